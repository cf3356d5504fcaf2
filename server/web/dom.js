// Elements from data. Text is never parsed as markup.

// el("a", {href: "#", class: "x", onclick: f}, "text", child, ...). An attribute
// that is false, null or undefined is left out.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) {
      element.addEventListener(key.slice(2), value);
    } else if (key === "width%") {
      element.style.width = `${Math.max(0, Math.min(100, value))}%`;
    } else if (key === "color") {
      element.style.background = value;
    } else {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(3).filter(
      (child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Replaces what an element has; what is null or false is left out.
export function put(element, ...children) {
  element.replaceChildren(...children.flat(3).filter(
      (child) => child !== null && child !== undefined && child !== false));
}

export function panel(title, ...children) {
  return el("section", {class: "panel"}, title ? el("h2", {}, title) : null, ...children);
}

// Pairs of a name and a value (a text, an element, or a list of them); pairs
// without a value are left out.
export function facts(pairs, kind = "facts") {
  const list = el("dl", {class: kind});
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    const term = el("dt", {}, name);
    const description = el("dd", {}, ...[value].flat());
    if (kind === "tiles") {
      list.append(el("div", {}, term, description));
    } else {
      list.append(term, description);
    }
  }
  return list;
}

// [{title, value: row => number or text to sort by, cell: row => content,
//   number: right-aligned, wrap: may break}]. Sorting is by the buttons in the
// head. The first cell is the head of its row.
export function table(caption, columns, rows, options = {}) {
  const live = liveTable(caption, columns, options);
  live.update(rows);
  return live.element;
}

// A table whose rows change: update(rows) keeps the order that was chosen, and
// the rows that say the same as before. Rows are plain data, and a cell depends
// on its row alone.
export function liveTable(caption, columns, {sort = null, down = false, empty = "none"} = {}) {
  let column = sort, descending = down;
  let rows = [];
  let made = new Map();  // from a row's JSON to its element
  const body = el("tbody");
  const heads = columns.map((one, index) => {
    const head = el("th", {scope: "col", class: one.number ? "number" : null});
    if (one.value) {
      head.append(
          el("button", {
            type: "button",
            onclick: () => {
              descending = column === index ? !descending : Boolean(one.number);
              column = index;
              fill();
            }
          },
             one.title));
    } else {
      head.append(one.title || el("span", {class: "unseen"}, "Actions"));
    }
    return head;
  });
  function fill() {
    heads.forEach((head, index) => {
      if (index === column) {
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      } else {
        head.removeAttribute("aria-sort");
      }
    });
    let order = rows;
    if (column !== null) {
      const key = columns[column].value;
      order = [...rows].sort((a, b) => compareValues(key(a), key(b)) * (descending ? -1 : 1));
    }
    const before = made;
    made = new Map();
    const elements = order.map((row, index) => {
      // Equal rows each have an element.
      let text = JSON.stringify(row);
      if (made.has(text)) text += index;
      made.set(text, before.get(text) ?? rowElement(row));
      return made.get(text);
    });
    if (order.length === 0) {
      elements.push(el("tr", {}, el("td", {colspan: columns.length, class: "dim"}, empty)));
    }
    place(body, elements);
  }
  function rowElement(row) {
    return el("tr", {class: row.rowClass ?? null},
              columns.map(
                  (one, index) =>
                      el(index === 0 ? "th" : "td", {
                        scope: index === 0 ? "row" : null,
                        class: one.number ? "number" :
                            one.wrap      ? "wrap" :
                                            null
                      },
                         one.cell(row))));
  }
  return {
    element: scrollable(
        caption,
        el("table", {}, el("caption", {class: "unseen"}, caption),
           el("thead", {}, el("tr", {}, heads)), body)),
    update(changed) {
      rows = changed;
      fill();
    }
  };
}

// Makes these elements the children. Those that stay where they are keep the
// focus, and are not laid out again.
export function place(parent, elements) {
  const there = [...parent.children];
  const stay = new Set(there.filter((one, index) => one === elements[index]));
  if (there.length !== elements.length ||
      elements.some((one) => !stay.has(one) && one.parentNode === parent)) {
    parent.replaceChildren(...elements);
    return;
  }
  elements.forEach((one, index) => {
    if (!stay.has(one)) there[index].replaceWith(one);
  });
}

// What is wider than the page scrolls by itself, by keyboard too.
export function scrollable(label, content) {
  return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": label}, content);
}

// Far faster than localeCompare, which makes one for each pair.
const ORDER_OF_TEXTS = new Intl.Collator("en", {numeric: true});

// Unknown values are last in either order of a reader's mind: they are largest.
function compareValues(a, b) {
  const unknownA = a === null || a === undefined, unknownB = b === null || b === undefined;
  if (unknownA || unknownB) return Number(unknownA) - Number(unknownB);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return ORDER_OF_TEXTS.compare(String(a), String(b));
}

const GOOD = new Set(["done", "idle", "ok", "faster", "same", "resolved"]);
const ON = new Set(["running", "busy", "checking"]);
const WARN = new Set([
  "acknowledged", "inconclusive", "queued", "draining", "drained", "paused", "unsteady",
  "cancelled", "stopped early"
]);
const BAD = new Set([
  "failed", "open", "regression", "slower", "quarantined", "incompatible", "run_error",
  "wrong_result", "compile_error", "compile_timeout", "run_timeout", "invalid_schedule",
  "device_lost"
]);

export function stateBadge(state) {
  const kind = GOOD.has(state) ? "good" :
      ON.has(state)            ? "on" :
      WARN.has(state)          ? "warn" :
      BAD.has(state)           ? "bad" :
                                 "";
  return el("span", {class: `state ${kind}`}, state.replaceAll("_", " "));
}

// A bar and its number, in a table.
export function barCell(share, text, kind = "") {
  return el(
      "div", {class: "barcell"},
      el("div", {class: `track ${kind}`, "aria-hidden": "true"},
         el("span", {"width%": share * 100})),
      el("span", {}, text));
}

export function codeBlock(text, label) {
  return el("pre", {tabindex: 0, role: "region", "aria-label": label}, text);
}

// Content that is fetched when it is opened.
export function lazyDetails(summary, load) {
  const place = el("div", {});
  const details = el("details", {}, el("summary", {}, summary), place);
  let asked = false;
  details.addEventListener("toggle", async () => {
    if (asked || !details.open) return;
    asked = true;
    place.replaceChildren(el("p", {class: "dim"}, "Loading …"));
    try {
      place.replaceChildren(await load());
    } catch (error) {
      place.replaceChildren(el("p", {class: "error"}, error.message));
    }
  });
  return details;
}

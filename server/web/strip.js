// Strips of many samples: a row for each device, a column for each time. Drawn
// on a canvas without a library, because no chart has a million cells.
import {colors} from "./charts.js";
import {el} from "./dom.js";

// An hour, of which the times that are not known yet are empty.
const LEAST_COLUMNS = 360;

// The colour of each state, by its letter in the API's history.
export function stateColors() {
  const color = colors();
  return {
    i: color.grid,
    b: color.series[0],
    c: color.series[5],
    d: color.warn,
    D: color.series[6],
    p: color.series[3],
    q: color.bad,
    o: color.panel,
    x: color.series[7]
  };
}

export function stateLegend(letters) {
  const color = stateColors();
  return el(
      "ul", {class: "legend"},
      Object.entries(letters).map(
          ([letter, name]) => el(
              "li", {}, el("span", {class: "swatch", color: color[letter], "aria-hidden": "true"}),
              name)));
}

// rows: [{name, states, busy}], columns: how many times there are. The cells of
// busy devices are as strong as they are busy.
export function stateStrip({rows, columns, label, onRow}) {
  const height = Math.max(2, Math.min(14, Math.floor(640 / Math.max(rows.length, 1))));
  const width = Math.max(columns, LEAST_COLUMNS);
  const canvas = el("canvas", {
    class: "strip",
    role: "img",
    "aria-label": label,
    width: width * 2,
    height: rows.length * height
  });
  canvas.style.height = `${rows.length * height + 2}px`;
  const draw = () => {
    const context = canvas.getContext("2d");
    const color = stateColors();
    context.fillStyle = color.o;
    context.fillRect(0, 0, canvas.width, canvas.height);
    rows.forEach((row, y) => {
      const from = width - row.states.length;
      let start = 0;
      // Equal cells are one rectangle.
      for (let x = 1; x <= row.states.length; ++x) {
        if (x < row.states.length && row.states[x] === row.states[start] &&
            row.busy[x] === row.busy[start])
          continue;
        const letter = row.states[start];
        context.globalAlpha = letter === "b" ? 0.35 + 0.65 * Number(row.busy[start]) / 9 : 1;
        context.fillStyle = color[letter] ?? color.o;
        context.fillRect(
            (from + start) * 2, y * height, (x - start) * 2, height - (height > 4 ? 1 : 0));
        start = x;
      }
    });
    context.globalAlpha = 1;
  };
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  canvas.addEventListener("click", (event) => {
    const place = canvas.getBoundingClientRect();
    const row = rows[Math.floor((event.clientY - place.top) / place.height * rows.length)];
    if (row && onRow) onRow(row);
  });
  return canvas;
}

// Search in the database, and the choice of two records to compare.
import {get} from "../api.js";
import {el, facts, panel, put, stateBadge, table} from "../dom.js";
import {count, date, deviceName, part, seconds, shortHash, shortTarget} from "../format.js";
import {workloadLink} from "../summary.js";

const FIELDS = [
  {name: "workload", text: "Workload (first digits)"},
  {name: "text", text: "In the program"},
  {name: "target", text: "Target"},
  {name: "device", text: "Device"},
  {name: "job", text: "Job"},
  {
    name: "status",
    text: "Status",
    choices: [
      "ok", "invalid_schedule", "compile_error", "compile_timeout", "run_error", "run_timeout",
      "wrong_result", "device_lost"
    ]
  },
];

export async function showDatabase({root, page, query}) {
  page.title("Database");
  const asked = Object.fromEntries(FIELDS.map(({name}) => [name, query.get(name) ?? ""]));
  const chosen = new Set([query.get("a")].filter(Boolean).map(Number));
  const [stats, found] =
      await Promise.all([get("database"), get("records", {...asked, limit: 100})]);
  const records = found.records;
  const list = el("div"),
        compare =
            el("button", {
              type: "button",
              class: "primary",
              disabled: true,
              onclick: () => {
                const [a, b] = [...chosen];
                location.hash = `#/compare?a=${a}&b=${b}`;
              }
            },
               "Compare two records");
  const more =
      el("button", {
        type: "button",
        onclick: async () => {
          const next = await get("records", {...asked, limit: 100, before: records.at(-1).record});
          records.push(...next.records);
          more.hidden = !next.more;
          fill();
        }
      },
         "Older records");
  more.hidden = !found.more;
  function choose(record, on) {
    on ? chosen.add(record) : chosen.delete(record);
    compare.disabled = chosen.size !== 2;
    compare.textContent =
        chosen.size === 2 ? `Compare ${[...chosen].join(" and ")}` : "Compare two records";
  }
  function fill() {
    list.replaceChildren(
        table("Records", columnsOf(chosen, choose), records, {empty: "No record is like that."}));
  }
  fill();
  for (const one of chosen) choose(one, true);
  put(root, el("h1", {}, "Database"),
      el("p", {class: "under"},
         `Every candidate that was measured. Schema ${stats.schema_version}, ${stats.uuid}.`),
      facts(
          [
            ["records", count(stats.records)], ["workloads", count(stats.workloads)],
            ...Object.entries(stats.by_status)
                .map(([status, number]) => [status.replaceAll("_", " "), count(number)])
          ],
          "tiles"),
      panel(
          "Records", form(asked), el("p", {class: "buttons"}, compare), list,
          el("p", {class: "buttons"}, more)));
}

function form(asked) {
  const inputs = FIELDS.map((one) => {
    const id = `f-${one.name}`;
    const input = one.choices ?
        el("select", {id, name: one.name}, el("option", {value: ""}, "any"),
           one.choices.map(
               (choice) =>
                   el("option", {value: choice, selected: asked[one.name] === choice},
                      choice.replaceAll("_", " ")))) :
        el("input", {id, name: one.name, type: "search", value: asked[one.name]});
    return el("div", {}, el("label", {for: id
              }, one.text), input);
  });
  return el(
      "form", {
        class: "fields",
        onsubmit: (event) => {
          event.preventDefault();
          const data = [...new FormData(event.target)].filter(([, value]) => value !== "");
          location.hash = `#/database?${new URLSearchParams(data)}`;
        }
      },
      inputs, el("div", {}, el("button", {type: "submit"}, "Search")));
}

function columnsOf(chosen, choose) {
  return [
    {
      title: "Record",
      value: (one) => one.record,
      cell: (one) => el("a", {href: `#/records/${one.record}`}, one.record)
    },
    {
      title: "Compare",
      cell: (one) => el("input", {
        type: "checkbox",
        "aria-label": `Compare record ${one.record}`,
        checked: chosen.has(one.record),
        onchange: (event) => choose(one.record, event.target.checked)
      })
    },
    {
      title: "Status",
      value: (one) => one.status,
      cell: (one) =>
          [stateBadge(one.status), one.stopped_early ? [" ", stateBadge("stopped early")] : null]
    },
    {
      title: "Median",
      value: (one) => one.seconds,
      number: true,
      cell: (one) => seconds(one.seconds)
    },
    {
      title: "Confirmed",
      value: (one) => one.confirmed,
      cell: (one) => one.confirmed ? "yes" : "no"
    },
    {
      title: "Workload",
      value: (one) => one.workload,
      cell: (one) => workloadLink(one, el("span", {class: "mono"}, shortHash(one.workload)))
    },
    {title: "Target", value: (one) => one.target, cell: (one) => shortTarget(one.target)},
    {title: "Device", value: (one) => one.device, cell: (one) => deviceName(one.device)},
    {
      title: "Job",
      value: (one) => one.job,
      cell: (one) => one.job ?
          el("a", {href: `#/jobs/${part(one.job)}`, class: "mono"}, one.job.replace(/^job-/, "")) :
          ""
    },
    {title: "Recorded", value: (one) => one.recorded_at, cell: (one) => date(one.recorded_at)},
  ];
}

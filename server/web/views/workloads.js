// All workloads that have records: a function on a target.
import {get} from "../api.js";
import {el, panel, put, table} from "../dom.js";
import {count, date, seconds, shortHash, shortTarget, times} from "../format.js";
import {workloadLink} from "../summary.js";

export async function showWorkloads({root, page}) {
  page.title("Workloads");
  const {workloads} = await get("workloads");
  put(root, el("h1", {}, "Workloads"),
      el("p", {class: "under"}, "Each function that was tuned, on each target."),
      panel(
          "",
          table(
              "Workloads", COLUMNS, workloads,
              {sort: 6, down: true, empty: "Nothing has been measured yet."})));
}

const COLUMNS = [
  {
    title: "Workload",
    value: (one) => one.workload,
    cell: (one) => workloadLink(one, el("span", {class: "mono"}, shortHash(one.workload)))
  },
  {
    title: "Known as",
    value: (one) => one.names[0],
    wrap: true,
    cell: (one) => one.names.slice(0, 3).join(", ")
  },
  {title: "Target", value: (one) => one.target, cell: (one) => shortTarget(one.target)},
  {title: "Records", value: (one) => one.records, number: true, cell: (one) => count(one.records)},
  {
    title: "Best",
    value: (one) => one.best_seconds,
    number: true,
    cell: (one) => seconds(one.best_seconds)
  },
  {
    title: "Gain",
    value: (one) => one.best_seconds > 0 && one.unscheduled_seconds > 0 ?
        one.unscheduled_seconds / one.best_seconds :
        null,
    number: true,
    cell: (one) => times(one.unscheduled_seconds, one.best_seconds)
  },
  {title: "Latest record", value: (one) => one.recorded_at, cell: (one) => date(one.recorded_at)},
];

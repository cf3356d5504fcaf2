// Two records side by side: facts, program, trace, assembly.
import {get} from "../api.js";
import {pairLines} from "../diff.js";
import {el, lazyDetails, panel, put} from "../dom.js";
import {date, deviceName, seconds, shortHash, shortTarget, times} from "../format.js";

export async function showComparison({root, page, query}) {
  const ids = [query.get("a"), query.get("b")];
  const [a, b] = await Promise.all(ids.map((id) => get(`records/${encodeURIComponent(id)}`)));
  page.title(`Records ${a.record} and ${b.record}`);
  const faster = a.median_seconds < b.median_seconds ? [a, b] : [b, a];
  const known = a.median_seconds > 0 && b.median_seconds > 0;
  const texts = (what) =>
      Promise.all([a, b].map(async (one) => (await get(`records/${one.record}/${what}`)).text));
  put(root, el("p", {class: "crumbs"}, el("a", {href: "#/database"}, "Database"), " / comparison"),
      el("h1", {}, `Records ${a.record} and ${b.record}`),
      el("p", {class: "under"},
         known ? `Record ${faster[0].record} is ${
                     times(faster[1].median_seconds, faster[0].median_seconds)} as fast.` :
                 "Not both were timed.",
         a.workload === b.workload ? "" : " They are of different workloads."),
      panel("Facts", factsTable(a, b)),
      panel(
          "Texts", lazyDetails("Traces", async () => sideBySide(a, b, a.trace, b.trace)),
          lazyDetails(
              "Scheduled programs", async () => sideBySide(a, b, ...await texts("schedule"))),
          lazyDetails("Assembly", async () => sideBySide(a, b, ...await texts("assembly")))));
  root.querySelector("details").open = true;
}

const FACTS = [
  ["Status", (one) => one.status],
  ["Median", (one) => seconds(one.median_seconds)],
  [
    "95 % of the median",
    (one) => `${seconds(one.ci_low_seconds)} to ${seconds(one.ci_high_seconds)}`
  ],
  ["Measured again", (one) => String((one.remeasured ?? []).length)],
  ["Build", (one) => seconds(one.compile_seconds)],
  ["Workload", (one) => shortHash(one.workload)],
  ["Target", (one) => shortTarget(one.target)],
  ["Device", (one) => deviceName(one.device)],
  ["Compiler", (one) => one.fingerprint],
  ["Code", (one) => shortHash(one.code_digest)],
  ["Layout", (one) => one.protocol.layout.replaceAll("_", " ")],
  ["Cores", (one) => String(one.protocol.cores)],
  ["Library", (one) => one.library ?? "none"],
  ["Job", (one) => one.job_id],
  ["Recorded", (one) => date(one.recorded_at)],
];

function factsTable(a, b) {
  return el(
      "div",
      {class: "scroll", tabindex: 0, role: "region", "aria-label": "Facts of the two records"},
      el("table", {},
         el("thead", {},
            el("tr", {},
               ["", a.record, b.record].map(
                   (one) => one === "" ?
                       el("td", {}) :
                       el("th", {scope: "col"},
                          el("a", {href: `#/records/${one}`}, `Record ${one}`))))),
         el("tbody", {},
            FACTS.map(
                ([name, of]) => el(
                    "tr", {class: of(a) === of(b) ? null : "differs"},
                    el("th", {scope: "row"}, name), el("td", {}, of(a)), el("td", {}, of(b)))))));
}

function sideBySide(a, b, left, right) {
  const rows = pairLines(left, right);
  const different = rows.filter((row) => row.left !== row.right).length;
  return el(
      "div", {},
      el("p", {class: "dim"},
         different === 0 ? "They are equal." : `${different} of ${rows.length} lines differ.`),
      el("div", {
        class: "diff",
        tabindex: 0,
        role: "region",
        "aria-label": `Record ${a.record} on the left, record ${b.record} on the right`
      },
         el("div", {class: "head"}, `Record ${a.record}`),
         el("div", {class: "head"}, `Record ${b.record}`),
         rows.flatMap(
             (row) =>
                 [el("div", {class: row.left !== row.right && row.left !== null ? "removed" : null},
                     row.left ?? ""),
                  el("div", {class: row.left !== row.right && row.right !== null ? "added" : null},
                     row.right ?? "")])));
}

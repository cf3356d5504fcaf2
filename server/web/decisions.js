// What each decision of a sketch went with.
import {barCell, codeBlock, el} from "./dom.js";
import {count, percent, seconds} from "./format.js";

// `answer`: of GET /api/v1/workloads/{workload}/decisions.
export function decisionTables({sketches, of}) {
  const timed = sketches.filter((one) => one.timed > 0);
  if (timed.length === 0) return el("p", {class: "dim"}, "No candidate was timed yet.");
  return el(
      "div", {},
      el("p", {class: "dim"},
         "For each decision of a sketch, the share of the variance of log(time) that its values go with. " +
             "A search tries good values together, so a large share is a hint and no proof. " +
             `The ${timed.length} sketches with most timed candidates, of ${of}.`),
      timed.map(
          (sketch, index) =>
              el("details", {open: index === 0},
                 el("summary", {},
                    `Sketch ${sketch.sketch}: ${count(sketch.timed)} timed of ${
                        count(sketch.candidates)}, best ${seconds(sketch.best_seconds)}`),
                 el("div", {
                   class: "scroll",
                   tabindex: 0,
                   role: "region",
                   "aria-label": `Decisions of sketch ${sketch.sketch}`
                 },
                    decisionTable(sketch)),
                 el("details", {}, el("summary", {}, "The sketch"),
                    codeBlock(sketch.text, "The sketch")))));
}

function decisionTable(sketch) {
  const head = ["Decision", "Share", "Values, by the fastest candidate with each"];
  return el(
      "table", {}, el("thead", {}, el("tr", {}, head.map((one) => el("th", {scope: "col"}, one)))),
      el("tbody", {},
         [...sketch.decisions]
             .sort((a, b) => b.share - a.share)
             .map(
                 (one) =>
                     el("tr", {}, el("th", {scope: "row", class: "mono"}, shortCall(one.call)),
                        el("td", {}, barCell(one.share, percent(one.share))),
                        el("td", {class: "wrap"},
                           one.effects.slice(0, 6).map(
                               (effect) => el(
                                   "div", {}, el("code", {}, effect.value),
                                   ` best ${seconds(effect.best_seconds)}, median ${
                                       seconds(
                                           effect.median_seconds)}, ${count(effect.count)} tried`)),
                           one.values > 6 ?
                               el("div", {class: "dim"}, `${count(one.values - 6)} more values`) :
                               null)))));
}

// "sample_perfect_tile(loop=l1, n=4)" of a line of a sketch.
function shortCall(call) {
  return call.replace(/^.*sch\./, "")
      .replace(/, (max_innermost_factor|probs|decision)=(\[[^\]]*\]|[^,)]*)/g, "");
}

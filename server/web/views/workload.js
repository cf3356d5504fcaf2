// One workload: how far its candidates are from the limits, which decisions
// mattered, and the best schedule.
import {get} from "../api.js";
import {bestOf, Candidates, timeOf} from "../candidates.js";
import {decisionTables} from "../decisions.js";
import {codeBlock, el, facts, lazyDetails, panel, put} from "../dom.js";
import {count, gflops, part, percent, seconds, shortHash, shortTarget, times, unit} from "../format.js";
import {candidatesPicture, predictionChart} from "../pictures.js";
import {peakName, rooflineChart} from "../roofline.js";
import {fastestTable, workloadLink} from "../summary.js";

export async function showWorkload({root, page, values, query}) {
  const address = `workloads/${part(values.workload)}`;
  const target = {target: query.get("target")};
  const [workload, columns, decisions] = await Promise.all([
    get(address, target), get(`${address}/candidates`, target), get(`${address}/decisions`, target)
  ]);
  const candidates = new Candidates().add(columns);
  const best = bestOf(candidates.all.filter((one) => !one.library));
  const library = bestOf(candidates.all.filter((one) => one.library));
  const open = (candidate) => {
    location.hash = `#/records/${candidate.record}`;
  };
  const name = workload.names[0] ?? shortHash(workload.workload);
  const {roofline} = workload;
  const rate = best ? roofline.flops / timeOf(best) : 0;
  page.title(name);
  put(root,
      el("p", {class: "crumbs"}, el("a", {href: "#/workloads"}, "Workloads"), " / ",
         shortHash(workload.workload)),
      el("h1", {}, name),
      el("p", {class: "under"}, shortTarget(workload.target),
         workload.targets.length > 1 ?
             [
               " · also on ",
               workload.targets.filter((one) => one !== workload.target)
                   .map(
                       (one, index) =>
                           [index > 0 ? ", " : "",
                            workloadLink({...workload, target: one}, shortTarget(one))])
             ] :
             null),
      facts(
          [
            ["Best", [seconds(best && timeOf(best)), el("small", {}, gflops(rate / 1e9))]],
            workload.unscheduled_seconds ?
                [
                  "Against the program as written",
                  [
                    times(workload.unscheduled_seconds, best && timeOf(best)),
                    el("small", {}, seconds(workload.unscheduled_seconds))
                  ]
                ] :
                ["", null],
            library ?
                [
                  "Against the library",
                  [
                    times(timeOf(library), best && timeOf(best)),
                    el("small", {}, seconds(timeOf(library)))
                  ]
                ] :
                ["", null],
            roofline.peak_flops_per_second && rate ?
                [
                  `Of the ${peakName(roofline)}`,
                  [
                    percent(rate / roofline.peak_flops_per_second),
                    el("small", {},
                       `${gflops(roofline.peak_flops_per_second / 1e9)} at ${
                           unit(roofline.clock_hertz / 1e6, "MHz")}`)
                  ]
                ] :
                ["", null],
            [
              "Records",
              [
                count(workload.records),
                el("small", {},
                   Object.entries(workload.by_status)
                       .map(([key, number]) => `${number} ${key.replaceAll("_", " ")}`)
                       .join(", "))
              ]
            ],
          ],
          "tiles"),
      el("div", {class: "grid"},
         panel("", rooflineChart({roofline, candidates: candidates.all, onPoint: open}).figure),
         panel("", predictionChart({candidates: candidates.all, onPoint: open}).figure),
         el("section", {class: "panel wide"},
            candidatesPicture({
              candidates: () => candidates.all,
              from: candidates.all[0]?.at ?? 0,
              onPoint: open,
              levels: () =>
                  [{name: "as written", seconds: workload.unscheduled_seconds},
                   {name: "library", seconds: library && timeOf(library)}],
            }).element),
         el("section", {class: "panel wide"}, el("h2", {}, "What each decision did"),
            decisionTables(decisions)),
         panel("Fastest candidates", fastestTable(candidates.all).element),
         panel(
             "Texts",
             lazyDetails("The program", async () => codeBlock(workload.program, "The program")),
             workload.best ? texts(workload.best) : null)));
}

// The texts of a record's schedule.
export function texts(record) {
  const text = async (what, name) => codeBlock((await get(`records/${record}/${what}`)).text, name);
  return [
    lazyDetails(
        `The program as record ${record} schedules it`,
        () => text("schedule", "The scheduled program")),
    lazyDetails(
        "Its trace", async () => codeBlock((await get(`records/${record}`)).trace, "The trace")),
    lazyDetails("Its assembly", () => text("assembly", "The assembly")),
  ];
}

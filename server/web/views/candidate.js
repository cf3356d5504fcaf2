// One record: what was built and run, what came of it, and its texts.
import {get} from "../api.js";
import {chart, points} from "../charts.js";
import {codeBlock, el, facts, panel, put, stateBadge, table} from "../dom.js";
import {count, date, deviceModel, deviceName, pairs, part, seconds, shortHash, shortTarget} from "../format.js";

import {texts} from "./workload.js";

export async function showCandidate({root, page, values}) {
  const record = await get(`records/${part(values.record)}`);
  page.title(`Record ${record.record}`);
  const workload = `#/workloads/${part(record.workload)}?target=${part(record.target)}`;
  put(root,
      el("p", {class: "crumbs"}, el("a", {href: "#/database"}, "Database"),
         ` / record ${record.record}`),
      el("h1", {}, `Record ${record.record} `, stateBadge(record.status)),
      el("p", {class: "under"}, el("a", {href: workload}, `workload ${shortHash(record.workload)}`),
         ` on ${shortTarget(record.target)}`,
         record.job_id ? [" · ", el("a", {href: `#/jobs/${part(record.job_id)}`}, record.job_id)] :
                         null,
         ` · trial ${record.sequence}`),
      record.error ? el("section", {class: "panel"}, el("h2", {}, "What went wrong"),
                        codeBlock(record.error, "The error")) :
                     null,
      facts(
          [
            [
              "Median",
              [
                seconds(record.median_seconds),
                el("small", {},
                   record.median_seconds > 0 ?
                       `${seconds(record.ci_low_seconds)} to ${seconds(record.ci_high_seconds)}` :
                       "not timed")
              ]
            ],
            ["Build", seconds(record.compile_seconds)],
            [
              "Verified",
              [
                record.verified ? "yes" : "no",
                el("small", {},
                   record.verified ?
                       `largest error ${Number(record.max_rel_error).toPrecision(2)} of its bound` :
                       "")
              ]
            ],
            ["Samples", count(record.seconds.length)],
            ["Measured again", count((record.remeasured ?? []).length)],
          ],
          "tiles"),
      el("div", {class: "grid"}, panel("", samplesChart(record).figure),
         panel("Build and run", facts([
                 ["Device", deviceName(record.device)], ["Model", deviceModel(record.device_model)],
                 ["Recorded", date(record.recorded_at)], ["Isolation", record.isolation],
                 ["Caches", record.protocol.cold_cache ? "cold" : "warm"],
                 ["Cores", record.protocol.cores],
                 ["Layout", record.protocol.layout.replaceAll("_", " ")],
                 ["Stopped early", record.stopped_early ? "yes" : "no"],
                 ["Emulated", record.emulated ? "yes" : "no"],
                 ["State of the device", pairs(record.device_state)],
                 ["Compiler", record.fingerprint], ["Code", shortHash(record.code_digest)],
                 ["Score of the model", record.model_score], ["Library", record.library],
                 ["Candidate", shortHash(record.candidate_id)]
               ])),
         panel(
             "Texts", texts(record.record),
             el("p", {class: "buttons"},
                el("a",
                   {
                     class: "button",
                     href: `#/database?workload=${part(record.workload)}&target=${
                         part(record.target)}&a=${record.record}`
                   },
                   "Compare with another record"))),
         (record.remeasured ?? []).length > 0 ?
             panel("Measured again", againTable(record.remeasured)) :
             null));
}

function samplesChart(record) {
  const rounds = [
    {name: "first", list: record.seconds},
    ...(record.remeasured ?? [])
        .map((one, index) => ({name: `again ${index + 1}`, list: one.seconds}))
  ];
  return chart({
    title: "Samples",
    note: "Each timed run, in the order in which they were taken.",
    label: "Times of the samples in their order.",
    x: {title: "sample"},
    y: {title: "time", ticks: (value) => seconds(value)},
    legend: rounds.length > 1,
    tooltip: (point) => seconds(point.y),
    datasets(color) {
      let at = 0;
      return rounds.map(
          (round, index) => points(
              round.name, round.list.map((value) => ({x: ++at, y: value})),
              color.series[index % 8]));
    },
  });
}

function againTable(list) {
  return table(
      "Measured again",
      [
        {title: "At", value: (one) => one.recorded_at, cell: (one) => date(one.recorded_at)},
        {title: "Status", value: (one) => one.status, cell: (one) => stateBadge(one.status)},
        {
          title: "Median",
          value: (one) => one.median_seconds,
          number: true,
          cell: (one) => seconds(one.median_seconds)
        },
        {title: "Device", value: (one) => one.device, cell: (one) => deviceName(one.device)},
      ],
      list);
}

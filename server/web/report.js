// A report: the pictures of a job in one file, from the data in it.
import {Candidates} from "./candidates.js";
import {decisionTables} from "./decisions.js";
import {el, panel, stateBadge} from "./dom.js";
import {date, seconds, shortTarget} from "./format.js";
import {candidatesPicture, predictionChart, projectionChart, sharesChart} from "./pictures.js";
import {rooflineChart} from "./roofline.js";
import {fastestTable, figuresOf, levelsOf, taskTable} from "./summary.js";

// Functions with pictures of their own: those with most time before tuning.
const MOST_FUNCTIONS = 8;

function showReport({job, candidates: columns, workloads, server}) {
  const candidates = new Candidates().add(columns);
  const several = job.tasks.length > 1;
  const weight = (task) =>
      (task.default_seconds ?? task.unscheduled_seconds ?? 0) * (task.weight ?? 1);
  const order = [...job.tasks].sort((a, b) => weight(b) - weight(a)).slice(0, MOST_FUNCTIONS);
  document.title = `${job.program} – Tilefarm report`;
  document.getElementById("main").replaceChildren(
      el("h1", {}, job.program, " ", stateBadge(job.state)),
      el("p", {class: "under"},
         `${job.job_id} · ${job.targets.map(shortTarget).join(", ")} · by ${job.user} · ${
             date(job.created)}`,
         job.ended ? ` to ${date(job.ended)}` : ""),
      figuresOf(job, candidates),
      several ?
          el("div", {class: "grid"}, panel("", sharesChart({tasks: job.tasks}).figure),
             panel("", projectionChart({tasks: job.tasks, candidates: candidates.all}).figure),
             el("section", {class: "panel wide"}, el("h2", {}, "Functions"),
                taskTable(job.tasks, {links: false}).element)) :
          "",
      ...order.map(
          (task) =>
              functionPart(job, task, candidates.of(several ? task : null), workloads, several)),
      el("p", {class: "dim"},
         `Made by tune report of Tilefarm ${server.release}; compiler ${
             server.fingerprint}; database ${server.database}.`));
}

function functionPart(job, task, list, workloads, several) {
  const known =
      workloads.find((one) => one.workload === task.workload && one.target === task.target);
  return el(
      "div", {}, several ? el("h2", {}, `${task.function}: ${seconds(task.best_seconds)}`) : "",
      el("div", {class: "grid"},
         el("section", {class: "panel wide"}, candidatesPicture({
                                                candidates: () => list,
                                                from: Date.parse(job.created),
                                                levels: () => levelsOf(task, list)
                                              }).element),
         known ? panel("", rooflineChart({roofline: known.roofline, candidates: list}).figure) : "",
         panel("", predictionChart({candidates: list}).figure),
         el("section", {class: "panel wide"}, el("h2", {}, "Fastest candidates"),
            fastestTable(list, {links: false, name: several ? task.function : ""}).element),
         known ? el("section", {class: "panel wide"}, el("h2", {}, "What each decision did"),
                    decisionTables(known.decisions)) :
                 ""));
}

showReport(JSON.parse(document.getElementById("data").textContent));

// One job: what it gained, every candidate, its functions.
import {get, post, save, watch} from "../api.js";
import {Candidates} from "../candidates.js";
import {codeBlock, el, facts, lazyDetails, panel, put, stateBadge, table} from "../dom.js";
import {clock, count, date, deviceName, part, shortTarget} from "../format.js";
import {candidatesPicture, predictionChart, projectionChart, sharesChart} from "../pictures.js";
import {fastestTable, figuresOf, levelsOf, taskTable} from "../summary.js";

const MOST_FAILURES = 15;

export async function showJob({root, page, signal, values}) {
  const address = `jobs/${part(values.job)}`;
  let job = await get(address);
  const candidates = new Candidates().add(await get(`${address}/candidates`));
  page.title(job.program);
  const several = job.tasks.length > 1;
  const state = {
    task: job.tasks.reduce((a, b) => (b.share ?? 0) > (a?.share ?? 0) ? b : a, job.tasks[0])
  };
  const task = () =>
      job.tasks.find(
          (one) => one.workload === state.task?.workload && one.target === state.task?.target) ??
      null;
  const open = (candidate) => {
    location.hash = `#/records/${candidate.record}`;
  };
  const shown = () => candidates.of(several ? task() : null);

  const head = el("div"), figures = el("div"), tasks = el("div"), fastest = el("div"),
        failures = el("div");
  const picture = candidatesPicture({
    candidates: shown,
    from: Date.parse(job.created),
    onPoint: open,
    levels: () => levelsOf(task(), shown()),
  });
  const prediction = predictionChart({candidates: shown, onPoint: open});
  const projection =
      several ? projectionChart({tasks: () => job.tasks, candidates: () => candidates.all}) : null;
  const shares = several ? sharesChart({tasks: job.tasks}) : null;

  function fill() {
    head.replaceChildren(...headOf(job, page));
    figures.replaceChildren(figuresOf(job, candidates));
    if (several) tasks.replaceChildren(taskTable(job.tasks));
    fastest.replaceChildren(fastestTable(shown()));
    failures.replaceChildren(...failuresOf(shown(), job));
  }
  function redraw() {
    fill();
    picture.redraw();
    prediction.redraw();
    projection?.redraw();
  }
  fill();
  put(root, head, figures,
      several ? el("div", {class: "grid"}, panel("", shares.figure), panel("", projection.figure),
                   el("div", {class: "wide"}, panel("Functions", tasks))) :
                null,
      el("div", {class: "grid"},
         el("section", {class: "panel wide"}, several ? taskChoice(job, state, redraw) : null,
            picture.element),
         panel("Fastest candidates", fastest), panel("", prediction.figure), failures),
      el("div", {class: "grid"}, optionsPanel(job), programPanel(job, address)));

  const ended = () => !["queued", "running"].includes(job.state);
  if (ended()) return;
  watch(
      `${address}/events`, signal,
      async (on) => {
        page.setLive(on);
        if (!on) return;
        job = await get(address);
        candidates.add(
            await get(`${address}/candidates`, {after: candidates.all.at(-1)?.record ?? 0}));
        redraw();
      },
      (event, data) => {
        if (event === "job") {
          const before = job.state;
          job = {...data, options: job.options};
          if (before !== job.state) page.announce(`The job is ${job.state}`);
        } else if (event === "candidates") {
          candidates.add(data);
        }
        redraw();
      });
}

function headOf(job, page) {
  const running = ["queued", "running"].includes(job.state);
  const cancel =
      el("button", {
        type: "button",
        class: "danger",
        onclick: async () => {
          cancel.disabled = true;
          try {
            await post(`jobs/${part(job.job_id)}/cancel`);
            page.announce("Cancelled");
          } catch (error) {
            cancel.after(el("span", {class: "error", role: "alert"}, error.message));
          }
        }
      },
         "Cancel the job");
  return [
    el("p", {class: "crumbs"}, el("a", {href: "#/jobs"}, "Jobs"), " / ", job.job_id),
    el("h1", {}, job.program, " ", stateBadge(job.state)),
    el("p", {class: "under"},
       `${job.targets.map(shortTarget).join(", ")} · by ${job.user || "an unknown user"} · ${
           date(job.created)}`,
       job.ended ? ` to ${date(job.ended)}` : ""),
    job.error ? el("p", {class: "error"}, job.error) : null,
    running && job.message ? el("p", {}, job.message) : null,
    running && job.trials > 0 ?
        el("progress", {max: job.trials, value: job.trials_done, "aria-label": "trials"}) :
        null,
    running && page.caller.may_change ? el("p", {class: "buttons"}, cancel) : null,
  ].filter(Boolean);
}

function taskChoice(job, state, redraw) {
  const select = el(
      "select", {
        id: "task",
        onchange: () => {
          state.task = job.tasks[Number(select.value)];
          redraw();
        }
      },
      job.tasks.map(
          (task, index) =>
              el("option", {
                value: index,
                selected: task.workload === state.task.workload && task.target === state.task.target
              },
                 `${task.function} ${job.targets.length > 1 ? shortTarget(task.target) : ""}`)));
  return el("div", {class: "fields"}, el("div", {}, el("label", {for: "task"
                                         }, "Function"), select));
}

function failuresOf(list, job) {
  const failed = list.filter((one) => one.status !== "ok");
  if (failed.length === 0) return [];
  return [panel(
      `Failed candidates (${count(failed.length)})`,
      table(
          "Failed candidates, the latest first",
          [
            {
              title: "Record",
              value: (one) => one.record,
              cell: (one) => el("a", {href: `#/records/${one.record}`}, one.record)
            },
            {title: "Status", value: (one) => one.status, cell: (one) => stateBadge(one.status)},
            {
              title: "Trial",
              value: (one) => one.sequence,
              number: true,
              cell: (one) => count(one.sequence)
            },
            {
              title: "After",
              value: (one) => one.at,
              number: true,
              cell: (one) => clock((one.at - Date.parse(job.created)) / 1000)
            },
            {title: "Device", value: (one) => one.device, cell: (one) => deviceName(one.device)},
          ],
          failed.slice(-MOST_FAILURES).reverse()))];
}

function optionsPanel(job) {
  const options = job.options ?? {};
  return panel(
      "Options", facts([
        ["Search", options.search],
        ["Cost model", options.model],
        ["Seed", options.seed],
        ["Priority", options.priority],
        ["Time limit", options.seconds ? clock(options.seconds) : "none"],
        ["Patience", options.patience ? `${options.patience} trials` : "off"],
        ["Caches", options.flush_cache ? "cold" : "warm"],
        ["Libraries", options.allow_library ? "permitted" : "not permitted"],
        ["Floats", options.strict_fp ? "as written" : "may be reordered"],
        ["Requirements", (options.requirements ?? []).join(", ")],
      ]),
      el("p", {class: "buttons"},
         el("button", {
           type: "button",
           onclick: () => save(`jobs/${part(job.job_id)}/timeline`, `${job.job_id}.trace.json`)
         },
            "Save the timeline (for Perfetto)")));
}

function programPanel(job, address) {
  return panel(
      "Program",
      lazyDetails(
          job.program, async () => codeBlock((await get(`${address}/program`)).text, "Program")));
}

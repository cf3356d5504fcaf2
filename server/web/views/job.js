// One job: what it gained, every candidate, its functions.
import {get, post, save, watch} from "../api.js";
import {Candidates} from "../candidates.js";
import {codeBlock, el, facts, lazyDetails, liveTable, panel, place, put, stateBadge} from "../dom.js";
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

  const head = headOf(job, page), figures = el("div");
  const tasks = several ? taskTable(job.tasks) : null;
  const fastest = fastestTable(shown()), failures = failuresPanel(job);
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
    head.update(job);
    figures.replaceChildren(figuresOf(job, candidates));
    tasks?.update(job.tasks);
    fastest.update(shown());
    failures.update(shown());
  }
  function redraw() {
    fill();
    picture.redraw();
    prediction.redraw();
    projection?.redraw();
  }
  fill();
  put(root, head.element, figures,
      several ? el("div", {class: "grid"}, panel("", shares.figure), panel("", projection.figure),
                   el("div", {class: "wide"}, panel("Functions", tasks.element))) :
                null,
      el("div", {class: "grid"},
         el("section", {class: "panel wide"}, several ? taskChoice(job, state, redraw) : null,
            picture.element),
         panel("Fastest candidates", fastest.element), panel("", prediction.figure),
         failures.element),
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

// update(job) changes what it says; a button keeps the focus and its answer.
function headOf(job, page) {
  const answer = el("span", {class: "error", role: "alert"});
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
            answer.textContent = error.message;
            cancel.disabled = false;
          }
        }
      },
         "Cancel the job");
  const crumbs = el("p", {class: "crumbs"}, el("a", {href: "#/jobs"}, "Jobs"), " / ", job.job_id);
  const title = el("h1"), under = el("p", {class: "under"}), error = el("p", {class: "error"}),
        message = el("p"), progress = el("progress", {"aria-label": "trials"}),
        buttons = el("p", {class: "buttons"}, cancel, answer);
  const element = el("div", {}, crumbs, title, under, error, message, progress);
  return {
    element,
    update(job) {
      const running = ["queued", "running"].includes(job.state);
      put(title, job.program, " ", stateBadge(job.state));
      put(under, `${job.targets.map(shortTarget).join(", ")} · by ${
                     job.user || "an unknown user"} · ${date(job.created)}`,
          job.ended ? ` to ${date(job.ended)}` : "");
      error.textContent = job.error;
      error.hidden = !job.error;
      message.textContent = job.message;
      message.hidden = !running || !job.message;
      progress.max = job.trials || 1;
      progress.value = job.trials_done;
      progress.hidden = !running || job.trials === 0;
      if (!running || !page.caller.may_change) {
        buttons.remove();
      } else if (!buttons.isConnected) {
        element.append(buttons);
      }
    }
  };
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

// Nothing while no candidate failed.
function failuresPanel(job) {
  const live = liveTable("Failed candidates, the latest first", [
    {
      title: "Record",
      value: (one) => one.record,
      cell: (one) => el("a", {href: `#/records/${one.record}`}, one.record)
    },
    {title: "Status", value: (one) => one.status, cell: (one) => stateBadge(one.status)},
    {title: "Trial", value: (one) => one.sequence, number: true, cell: (one) => count(one.sequence)},
    {
      title: "After",
      value: (one) => one.at,
      number: true,
      cell: (one) => clock((one.at - Date.parse(job.created)) / 1000)
    },
    {title: "Device", value: (one) => one.device, cell: (one) => deviceName(one.device)},
  ]);
  const section = panel("Failed candidates", live.element);
  const element = el("div");
  return {
    element,
    update(list) {
      const failed = list.filter((one) => one.status !== "ok");
      section.firstChild.textContent = `Failed candidates (${count(failed.length)})`;
      live.update(failed.slice(-MOST_FAILURES).reverse());
      place(element, failed.length > 0 ? [section] : []);
    }
  };
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

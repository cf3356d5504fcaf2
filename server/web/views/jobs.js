// All jobs, the latest first, and the form of a new one.
import {get, post, watch} from "../api.js";
import {el, facts, liveTable, panel, put, stateBadge} from "../dom.js";
import {count, date, part, seconds, shortTarget, times} from "../format.js";

const STATES = ["queued", "running", "done", "failed", "cancelled"];

export async function showJobs({root, page, signal, query}) {
  page.title("Jobs");
  const filters = {
    state: query.get("state") ?? "",
    program: query.get("program") ?? "",
    user: query.get("user") ?? ""
  };
  const jobs = new Map();
  const tiles = el("div");
  const list = liveTable(
      "Jobs", COLUMNS, {empty: "There are no such jobs. tune run PROGRAM submits one."});
  let states = {};
  const heading = el("h1", {}, "Jobs");

  function fill() {
    tiles.replaceChildren(
        facts(STATES.map((state) => [state, count(states[state] ?? 0)]), "tiles"));
    const rows = [...jobs.values()]
                     .filter(
                         (job) => (!filters.state || job.state === filters.state) &&
                             job.program.includes(filters.program) &&
                             (!filters.user || job.user === filters.user))
                     .reverse();
    list.update(rows);
  }
  function takeJobs(changed, byState) {
    for (const job of changed) jobs.set(job.id, job);
    states = byState;
    fill();
  }
  async function load() {
    const {jobs: all, by_state: byState} = await get("jobs", {limit: 500, ...filters});
    jobs.clear();
    takeJobs(all, byState);
  }
  await load();
  put(root, heading,
      el("p", {class: "under"}, "Programs and models that are tuned, and what came of it."), tiles,
      panel("", filterForm(filters), list.element), page.caller.may_change ? submitPanel(page) : null);
  watch(
      "events", signal,
      (on) => {
        page.setLive(on);
        if (on) load();
      },
      (event, data) => {
        if (event === "jobs") takeJobs(data.jobs, data.by_state);
      });
}

const COLUMNS = [
  {
    title: "Job",
    value: (job) => job.id,
    cell: (job) =>
        el("a", {href: `#/jobs/${part(job.id)}`, class: "mono"}, job.id.replace(/^job-/, ""))
  },
  {
    title: "Program",
    value: (job) => job.program,
    wrap: true,
    cell: (job) =>
        [job.program,
         job.tasks > 1 ? el("span", {class: "dim"}, ` · ${job.tasks} functions`) : null]
  },
  {
    title: "Target",
    value: (job) => job.target,
    cell: (job) => job.targets.map(shortTarget).join(", ")
  },
  {
    title: "State",
    value: (job) => job.state,
    cell:
        (job) => [stateBadge(job.state), job.error ? el("div", {class: "error"}, job.error) : null]
  },
  {
    title: "Trials",
    value: (job) => job.trials_done,
    number: true,
    cell: (job) =>
        job.trials > 0 ? `${count(job.trials_done)} / ${count(job.trials)}` : count(job.trials_done)
  },
  {
    title: "Best",
    value: (job) => job.best_seconds,
    number: true,
    cell: (job) => seconds(job.best_seconds)
  },
  {
    title: "Gain",
    value: (job) => job.best_seconds > 0 && job.unscheduled_seconds > 0 ?
        job.unscheduled_seconds / job.best_seconds :
        null,
    number: true,
    cell: (job) => times(job.unscheduled_seconds, job.best_seconds)
  },
  {title: "User", value: (job) => job.user, cell: (job) => job.user},
  {title: "Submitted", value: (job) => job.created, cell: (job) => date(job.created)},
];

function filterForm(filters) {
  const state =
      el("select", {id: "f-state"}, el("option", {value: ""}, "any"),
         STATES.map((one) => el("option", {value: one, selected: one === filters.state}, one)));
  const program = el("input", {id: "f-program", type: "search", value: filters.program});
  const user = el("input", {id: "f-user", type: "search", value: filters.user});
  return el(
      "form", {
        class: "fields",
        onsubmit: (event) => {
          event.preventDefault();
          location.hash = `#/jobs?${
              new URLSearchParams({state: state.value, program: program.value, user: user.value})}`;
        }
      },
      el("div", {},
         el("label",
            {for: "f-state"
            },
            "State"),
         state),
      el("div", {},
         el("label",
            {for: "f-program"
            },
            "Program"),
         program),
      el("div", {}, el("label", {for: "f-user"
         }, "User"), user), el("div", {}, el("button", {type: "submit"}, "Filter")));
}

function submitPanel(page) {
  const program = el("textarea", {id: "s-program", required: true, spellcheck: false});
  const name = el("input", {id: "s-name", value: "program.py"});
  const target = el("select", {id: "s-target", required: true});
  const trials = el("input", {id: "s-trials", type: "number", min: 1, value: 200});
  const answer = el("p", {class: "error", role: "alert"});
  get("devices").then(
      ({devices}) => {
        const keys =
            [...new Set(devices.filter((one) => one.state !== "offline").map((one) => one.target))];
        target.append(...keys.map((key) => el("option", {value: key}, shortTarget(key))));
      },
      (error) => {
        answer.textContent = error.message;
      });
  return el(
      "details", {class: "panel"}, el("summary", {}, "Submit a job"),
      el("form", {
        onsubmit: async (event) => {
          event.preventDefault();
          answer.textContent = "";
          try {
            const {id} = await post("jobs", {
              program: program.value,
              program_name: name.value,
              target: target.value,
              trials: String(trials.valueAsNumber)
            });
            page.announce(`Submitted ${id}`);
            location.hash = `#/jobs/${part(id)}`;
          } catch (error) {
            answer.textContent = error.message;
          }
        }
      },
         el("div", {class: "fields"},
            el("div", {},
               el("label",
                  {for: "s-name"
                  },
                  "Name"),
               name),
            el("div", {},
               el("label",
                  {for: "s-target"
                  },
                  "Target"),
               target),
            el("div", {},
               el("label",
                  {for: "s-trials"
                  },
                  "Trials"),
               trials)),
         el("label",
            {for: "s-program"
            },
            "Program (TVMScript)"),
         program, answer,
         el("p", {class: "buttons"}, el("button", {type: "submit", class: "primary"}, "Submit"))));
}

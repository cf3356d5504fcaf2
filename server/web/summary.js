// What a job gained, in figures and tables: on its page and in a report.
import {bestOf, timeOf} from "./candidates.js";
import {barCell, el, facts, liveTable} from "./dom.js";
import {clock, count, deviceName, gflops, part, percent, seconds, shortTarget, times} from "./format.js";

const FASTEST = 15;

// Times to compare the candidates of a task with.
export function levelsOf(task, list) {
  const library = bestOf(list.filter((one) => one.library));
  return [
    {name: "as written", seconds: task?.unscheduled_seconds},
    {name: "default schedule", seconds: task?.default_seconds},
    {name: "library", seconds: library ? timeOf(library) : null}
  ];
}

// `job`: with all its tasks; `candidates`: all of them.
export function figuresOf(job, candidates) {
  const single = job.tasks.length === 1 ? job.tasks[0] : null;
  const library = single ? bestOf(candidates.all.filter((one) => one.library)) : null;
  const best = job.projected_seconds ?? job.best_seconds;
  const before = job.projected_untuned_seconds ?? single?.default_seconds;
  const written = job.tasks.reduce(
      (sum, task) => sum + (task.unscheduled_seconds ?? NaN) * (task.weight ?? 1), 0);
  return facts(
      [
        [
          single ? "Best" : "Projected",
          [
            seconds(best),
            el("small", {}, single ? gflops(job.best_gflops) : `${job.tasks.length} functions`)
          ]
        ],
        written > 0 && best > 0 ?
            [
              "Against the program as written",
              [times(written, best), el("small", {}, seconds(written))]
            ] :
            ["", null],
        before > 0 ?
            ["Against default schedules", [times(before, best), el("small", {}, seconds(before))]] :
            ["", null],
        library ?
            [
              "Against the library",
              [times(timeOf(library), best), el("small", {}, seconds(timeOf(library)))]
            ] :
            ["", null],
        [
          "Trials",
          [
            job.trials > 0 ? `${count(job.trials_done)} of ${count(job.trials)}` :
                             count(job.trials_done),
            el("small", {},
               Object.entries(job.by_status)
                   .map(([name, number]) => `${number} ${name.replaceAll("_", " ")}`)
                   .join(", "))
          ]
        ],
        job.state === "running" ?
            [
              "Rate",
              [
                `${job.trials_per_second.toFixed(1)} / s`,
                el("small", {}, job.seconds_left === null ? "" : `${clock(job.seconds_left)} left`)
              ]
            ] :
            ["", null],
      ],
      "tiles");
}

// Of a list of candidates, which update(list) changes.
export function fastestTable(list, {links = true, name = ""} = {}) {
  const live = liveTable(
      name ? `Fastest candidates of ${name}` : "Fastest candidates",
      [
        {
          title: "Record",
          value: (one) => one.record,
          cell: (one) => links ? el("a", {href: `#/records/${one.record}`}, one.record) : one.record
        },
        {title: "Median", value: timeOf, number: true, cell: (one) => seconds(timeOf(one))},
        {
          title: "First median, 95 %",
          value: (one) => one.low,
          cell: (one) => `${seconds(one.low)} to ${seconds(one.high)}`
        },
        {
          title: "Confirmed",
          value: (one) => one.confirmed,
          cell: (one) => one.confirmed ? "yes" : "no"
        },
        {
          title: "Trial",
          value: (one) => one.sequence,
          number: true,
          cell: (one) => count(one.sequence)
        },
        {title: "Library", value: (one) => one.library, cell: (one) => one.library ? "yes" : "no"},
        {title: "Device", value: (one) => one.device, cell: (one) => deviceName(one.device)},
      ]);
  const update = (changed) => live.update(changed.filter((one) => one.counts)
                                              .sort((a, b) => timeOf(a) - timeOf(b))
                                              .slice(0, FASTEST));
  update(list);
  return {element: live.element, update};
}

export function workloadLink(task, text) {
  return el("a", {href: `#/workloads/${part(task.workload)}?target=${part(task.target)}`}, text);
}

// Shares of the whole: of the times before and after, each as often as it is
// called. A task without a time has none.
export function withShares(tasks) {
  const before = (task) =>
      (task.default_seconds ?? task.unscheduled_seconds ?? 0) * (task.weight ?? 1);
  const after = (task) => (task.best_seconds ?? 0) * (task.weight ?? 1);
  const allBefore = tasks.reduce((sum, task) => sum + before(task), 0);
  const allAfter = tasks.reduce((sum, task) => sum + after(task), 0);
  return tasks.map((task) => ({
                     ...task,
                     before: allBefore > 0 ? before(task) / allBefore : 0,
                     after: allAfter > 0 ? after(task) / allAfter : 0
                   }));
}

// Of a job's tasks, which update(tasks) changes.
export function taskTable(tasks, {links = true} = {}) {
  const targets = new Set(tasks.map((task) => task.target));
  const columns = [
    {
      title: "Function",
      value: (task) => task.function,
      cell: (task) =>
          links && task.trials_done > 0 ? workloadLink(task, task.function) : task.function
    },
    targets.size > 1 ?
        {title: "Target", value: (task) => task.target, cell: (task) => shortTarget(task.target)} :
        null,
    {title: "Output", value: (task) => task.shape, cell: (task) => task.shape},
    {
      title: "Calls",
      value: (task) => task.weight,
      number: true,
      cell: (task) => count(task.weight)
    },
    {
      title: "Share before",
      value: (task) => task.before,
      cell: (task) => barCell(task.before, percent(task.before))
    },
    {
      title: "Share after",
      value: (task) => task.after,
      cell: (task) => barCell(task.after, percent(task.after), "after")
    },
    {
      title: "As written",
      value: (task) => task.unscheduled_seconds,
      number: true,
      cell: (task) => seconds(task.unscheduled_seconds)
    },
    {
      title: "Default",
      value: (task) => task.default_seconds,
      number: true,
      cell: (task) => seconds(task.default_seconds)
    },
    {
      title: "Best",
      value: (task) => task.best_seconds,
      number: true,
      cell: (task) => seconds(task.best_seconds)
    },
    {
      title: "Gain",
      value: (task) => (task.default_seconds ?? task.unscheduled_seconds) / task.best_seconds,
      number: true,
      cell: (task) => times(task.default_seconds ?? task.unscheduled_seconds, task.best_seconds)
    },
    {
      title: "Rate",
      value: (task) => task.best_gflops,
      number: true,
      cell: (task) => gflops(task.best_gflops)
    },
    {
      title: "Trials",
      value: (task) => task.trials_done,
      number: true,
      cell: (task) => count(task.trials_done)
    },
    {title: "State", value: (task) => task.state, cell: (task) => task.state},
  ].filter(Boolean);
  const live = liveTable(
      "Functions", columns,
      {sort: columns.findIndex((one) => one.title === "Share before"), down: true});
  const update = (changed) => live.update(withShares(changed));
  update(tasks);
  return {element: live.element, update};
}

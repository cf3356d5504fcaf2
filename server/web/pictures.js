// The pictures of a job, on its page and in a report.
import {bestOf, improvements, lookOf, LOOKS, rankCorrelation, timeOf} from "./candidates.js";
import {chart, level, points, secondsTick, steps} from "./charts.js";
import {el} from "./dom.js";
import {deviceName, seconds, times} from "./format.js";

// Beyond this ratio to the best a time is drawn at the upper edge, so that what
// a search works on is to be seen.
const NEAR = 4;
// Failed candidates have no time: they stand above all others.
const ABOVE = 1.15;

function describe(point) {
  if (!point.candidate) return point.y ? seconds(point.y) : "";
  const one = point.candidate;
  return [
    `record ${one.record}: ${lookOf(one).name}`,
    one.seconds ? `${seconds(one.seconds)} (${seconds(one.low)} to ${seconds(one.high)})` :
                  "not timed",
    `trial ${one.sequence} on ${deviceName(one.device)}`
  ];
}

let groups = 0;  // of radio buttons

function choice(legend, options, chosen, take) {
  const name = `choice-${++groups}`;
  return el(
      "fieldset", {}, el("legend", {}, legend),
      options.map(
          ([value, text]) =>
              el("label", {},
                 el("input",
                    {type: "radio", name, checked: value === chosen, onchange: () => take(value)}),
                 ` ${text}`)));
}

// Every candidate of a task and the best so far, with what the reader may
// choose. `candidates()`: of one task; `levels()`: [{name, seconds}] to compare
// with; `from`: when time begins, in milliseconds. Returns {element, redraw}.
export function candidatesPicture({candidates, levels, from, onPoint}) {
  let by = "trials", range = "near";
  const place = (one, index) => by === "time" ? Math.max(0, (one.at - from) / 1000) : index + 1;
  function limits() {
    const list = candidates();
    const known = levels().filter((one) => one.seconds > 0);
    const best = bestOf(list);
    let low = Infinity, high = 0;
    for (const value of [...list.map((one) => one.seconds), ...known.map((one) => one.seconds)]) {
      if (!(value > 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (high === 0) return {low: 1e-6, high: 1e-3, known};
    if (range === "near" && best !== null) high = Math.min(high, NEAR * timeOf(best));
    return {low, high, known};
  }
  const picture = chart({
    title: "Candidates",
    note:
        "Each point is one candidate; the line is the best so far. Those that failed, and times beyond the range, stand at the top.",
    label:
        "Time of every candidate in the order of trials, and the best so far. The tables below have the numbers.",
    tall: true,
    x: () => ({title: by === "time" ? "seconds" : "trials"}),
    y: () => {
      const {low, high} = limits();
      return {
        title: "median time",
        type: "logarithmic",
        ticks: range === "near" ? seconds : secondsTick,
        min: low * 0.95,
        max: high * ABOVE * 1.05
      };
    },
    tooltip: describe,
    onPoint: (point) => point.candidate && onPoint && onPoint(point.candidate),
    datasets(color) {
      const list = candidates();
      const {high, known} = limits();
      const end = list.length > 0 ? Math.max(place(list[list.length - 1], list.length - 1), 1) : 1;
      const best = improvements(list).map(
          ({candidate, index}) =>
              ({x: place(candidate, index), y: Math.min(timeOf(candidate), high), candidate}));
      if (best.length > 0) best.push({x: end, y: best[best.length - 1].y});
      const sets = [steps("best so far", best, color.series[2])];
      known.forEach((one, index) => {
        const beyond = one.seconds > high;
        sets.push(level(
            `${one.name} ${seconds(one.seconds)}${beyond ? " (beyond)" : ""}`,
            beyond ? NaN : one.seconds, 0, end,
            [color.dim, color.series[3], color.series[1]][index % 3],
            [[6, 4], [2, 3], [8, 3, 2, 3]][index % 3]));
      });
      for (const look of LOOKS) {
        const data = [];
        list.forEach((one, index) => {
          if (lookOf(one) !== look) return;
          data.push({
            x: place(one, index),
            y: one.seconds ? Math.min(one.seconds, high) : high * ABOVE,
            candidate: one
          });
        });
        if (data.length > 0) {
          sets.push(points(
              `${look.name} (${data.length})`, data, color.series[look.series], look.style,
              look.filled));
        }
      }
      return sets;
    },
  });
  const element =
      el("div", {},
         choice(
             "Order by", [["trials", "trials"], ["time", "time"]], by,
             (value) => {
               by = value;
               picture.redraw();
             }),
         choice(
             "Times", [["near", `up to ${NEAR} times the best`], ["all", "all"]], range,
             (value) => {
               range = value;
               picture.redraw();
             }),
         picture.figure);
  return {element, redraw: () => picture.redraw()};
}

// What the model said before the measurement, against what was measured. Only
// the order of scores counts; candidates of the first rounds have none.
export function predictionChart({candidates, onPoint}) {
  const given = typeof candidates === "function" ? candidates : () => candidates;
  return chart({
    title: "Predicted against measured",
    note:
        "The score that the cost model gave before the measurement, of which only the order counts, and the measured speed " +
        "relative to the fastest candidate.",
    label:
        "Score of the cost model and measured relative speed of the candidates that the model chose.",
    x: {title: "predicted score"},
    y: {title: "measured speed", min: 0, max: 1.05, ticks: (value) => value > 1 ? "" : value},
    tooltip: describe,
    onPoint: (point) => point.candidate && onPoint && onPoint(point.candidate),
    datasets(color) {
      const list = given();
      const best = bestOf(list);
      if (best === null) return [];
      const data =
          list.filter((one) => one.seconds > 0 && one.score)
              .map((one) => ({x: one.score, y: timeOf(best) / one.seconds, candidate: one}));
      const correlation = rankCorrelation(data.map((one) => one.x), data.map((one) => one.y));
      return [points(
          `candidates (${data.length}${
              correlation === null ? "" : `, rank correlation ${correlation.toFixed(2)}`})`,
          data, color.series[0])];
    },
  });
}

// The projected time of the whole program, a sum over its tasks, as trials went.
export function projectionChart({tasks, candidates}) {
  const given = typeof candidates === "function" ? candidates : () => candidates;
  const targets = () => typeof tasks === "function" ? tasks() : tasks;
  return chart({
    title: "Projected time of the whole program",
    note: "The sum of the best times of its functions so far, each as often as it is called.",
    label: "Projected time of the whole program by trials.",
    x: {title: "trials"},
    y: {title: "projected time", ticks: (value) => seconds(value)},
    datasets(color) {
      const list = given();
      const best = new Map();
      const all = targets();
      const line = [];
      list.forEach((one, index) => {
        if (!one.counts) return;
        const key = `${one.workload} ${one.target}`;
        const before = best.get(key);
        if (before !== undefined && before <= timeOf(one)) return;
        best.set(key, timeOf(one));
        if (best.size < all.length) return;
        let sum = 0;
        for (const task of all)
          sum += (best.get(`${task.workload} ${task.target}`) ?? 0) * task.weight;
        line.push({x: index + 1, y: sum});
      });
      if (line.length > 0) line.push({x: list.length, y: line[line.length - 1].y});
      const sets = [steps("projected", line, color.series[2])];
      const untuned =
          all.reduce((sum, task) => sum + (task.default_seconds ?? NaN) * task.weight, 0);
      if (untuned > 0)
        sets.push(level(
            `default schedules ${seconds(untuned)}`, untuned, 0, list.length, color.dim, [6, 4]));
      return sets;
    },
  });
}

// Each task's share of the time before tuning and after.
export function sharesChart({tasks, most = 14}) {
  const rows =
      tasks
          .map((task) => ({
                 name: task.function,
                 before: (task.default_seconds ?? task.unscheduled_seconds ?? 0) * task.weight,
                 after: (task.best_seconds ?? 0) * task.weight
               }))
          .sort((a, b) => b.before - a.before);
  const shown = rows.slice(0, most);
  if (rows.length > most) {
    const rest = rows.slice(most);
    shown.push({
      name: `${rest.length} others`,
      before: rest.reduce((sum, one) => sum + one.before, 0),
      after: rest.reduce((sum, one) => sum + one.after, 0)
    });
  }
  const before = rows.reduce((sum, one) => sum + one.before, 0);
  const after = rows.reduce((sum, one) => sum + one.after, 0);
  return chart({
    title: "Time by function, before and after",
    note: before > 0 && after > 0 ? `All together ${seconds(before)} before, ${
                                        seconds(after)} after: ${times(before, after)} faster.` :
                                    "",
    label:
        "Time of each function, as often as it is called, before and after tuning. The table has the numbers.",
    type: "bar",
    horizontal: true,
    tall: shown.length > 8,
    labels: shown.map((one) => one.name),
    x: {title: "time", ticks: (value) => value > 0 ? seconds(value) : "0"},
    y: {type: "category", ticks: null, grid: false},
    tooltip: (value, item) => `${item.dataset.label}: ${seconds(value)}`,
    datasets: (color) =>
        [{label: "before", data: shown.map((one) => one.before), backgroundColor: color.series[7]},
         {label: "after", data: shown.map((one) => one.after), backgroundColor: color.series[2]},
  ],
  });
}

// The histories of benchmarks, and one with its change points.
import {get} from "../api.js";
import {chart, level, points as dots, segments} from "../charts.js";
import {el, facts, panel, put, stateBadge, table} from "../dom.js";
import {count, date, part, seconds} from "../format.js";

const KEYS = ["series", "benchmark", "device_class", "branch"];

export async function showBenchmarks({root, page}) {
  page.title("Regressions");
  const {benchmarks} = await get("benchmarks");
  put(root, el("h1", {}, "Regressions"),
      el("p", {class: "under"},
         "The benchmarks that commits are compared by, each on its device class and branch."),
      panel("", table("Benchmarks", COLUMNS, benchmarks, {
              sort: 0,
              empty: "There is no history yet: tune regress run makes one."
            })));
}

function address(one) {
  return `#/benchmark?${KEYS.map((key) => `${key}=${part(one[key])}`).join("&")}`;
}

// "+3.1 %" of a ratio of times.
function change(ratio) {
  if (!(ratio > 0)) return "–";
  return `${ratio >= 1 ? "+" : "−"}${Math.abs((ratio - 1) * 100).toFixed(1)} %`;
}

function shortCommit(commit) {
  return /^[0-9a-f]{12,}$/.test(commit) ? commit.slice(0, 10) : commit;
}

const ACKNOWLEDGE = "An open regression ends when its level is gone, or when a person says that " +
    "it is expected: tune regress ack BENCHMARK COMMIT --series NAME --reason TEXT.";

const COLUMNS = [
  {
    title: "Benchmark",
    value: (one) => one.benchmark,
    cell: (one) => el("a", {href: address(one)}, one.benchmark)
  },
  {title: "Series", value: (one) => one.series, cell: (one) => one.series},
  {
    title: "Device class",
    value: (one) => one.device_class,
    wrap: true,
    cell: (one) => one.device_class
  },
  {title: "Branch", value: (one) => one.branch, cell: (one) => one.branch},
  {
    title: "Latest commit",
    value: (one) => one.commit,
    cell: (one) => el("span", {class: "mono"}, shortCommit(one.commit))
  },
  {title: "Time", value: (one) => one.seconds, number: true, cell: (one) => seconds(one.seconds)},
  {
    title: "Against its baseline",
    value: (one) => one.ratio,
    number: true,
    cell: (one) => change(one.ratio)
  },
  {
    title: "Verdict",
    value: (one) => one.verdict,
    cell: (one) => one.verdict ? stateBadge(one.verdict) : "–"
  },
  {title: "Measured", value: (one) => one.at, cell: (one) => date(one.at)},
];

export async function showBenchmark({root, page, query}) {
  const history =
      await get("benchmarks/history", Object.fromEntries(KEYS.map((key) => [key, query.get(key)])));
  page.title(history.benchmark);
  const {points} = history;
  const last = points.commit.length - 1;
  const open = history.changes.filter((one) => one.state === "open");
  put(root,
      el("p", {class: "crumbs"}, el("a", {href: "#/benchmarks"}, "Regressions"),
         ` / ${history.series}`),
      el("h1", {}, history.benchmark, " ", open.length > 0 ? stateBadge("regression") : null),
      el("p", {class: "under"}, `${history.device_class} · branch ${history.branch}`),
      facts(
          [
            [
              "Latest",
              [seconds(points.seconds[last]), el("small", {}, shortCommit(points.commit[last]))]
            ],
            [
              "Baseline",
              [
                seconds(history.baseline.seconds),
                el("small", {}, `${count(history.baseline.last - history.baseline.first)} points`)
              ]
            ],
            ["Level against the baseline", change(history.current_ratio)],
            ["Open regressions", count(open.length)],
            ["Points", count(points.commit.length)],
          ],
          "tiles"),
      el("div", {class: "grid"}, el("section", {class: "panel wide"}, historyChart(history).figure),
         el("section", {class: "panel wide"}, el("h2", {}, "Changes"), changeTable(history)),
         open.length > 0 ? el("p", {class: "under wide"}, ACKNOWLEDGE) : null,
         history.acknowledgements.length > 0 ?
             panel("Acknowledged", acknowledgedTable(history.acknowledgements)) :
             null));
}

function historyChart(history) {
  const {points} = history;
  const last = points.commit.length - 1;
  const describe = (index) =>
      [shortCommit(points.commit[index]),
       `${seconds(points.seconds[index])} (${seconds(points.low[index])} to ${
           seconds(points.high[index])})`,
       `on ${points.device[index]}${points.unsteady[index] ? ", unsteady" : ""}`];
  return chart({
    title: "History",
    note: "The median of each commit and its 95 % interval. A vertical line: the level changed.",
    label: "Time of the benchmark by commits, with its changes. The table below has the changes.",
    tall: true,
    x: {title: "commits", ticks: (index) => shortCommit(points.commit[index] ?? "").slice(0, 7)},
    y: {title: "time", ticks: seconds},
    tooltip: (point) => describe(point.x),
    datasets(color) {
      const at = [...points.seconds.keys()].filter((index) => points.seconds[index]);
      const interval = (index) => points.low[index] && points.high[index] ?
          [points.low[index], points.high[index]] :
          [points.seconds[index], points.seconds[index]];
      const ends = at.flatMap(interval);
      const low = Math.min(...ends), high = Math.max(...ends);
      const verticals = (changes) =>
          changes.map(({index}) => [{x: index - 0.5, y: low}, {x: index - 0.5, y: high}]);
      const open = history.changes.filter((one) => one.state === "open");
      const others = history.changes.filter((one) => one.state !== "open");
      const medians = at.map((x) => ({x, y: points.seconds[x]}));
      const intervals = at.map((x) => interval(x).map((y) => ({x, y})));
      const baseline = history.baseline.seconds;
      const sets = [
        dots("median", medians, color.series[0]),
        segments("95 % interval", intervals, color.series[0]),
      ];
      if (baseline) {
        const name = `baseline ${seconds(baseline)}`;
        sets.push(level(name, baseline, 0, last, color.dim, [6, 4]));
      }
      if (open.length > 0)
        sets.push(segments("open regression", verticals(open), color.bad, [3, 3]));
      if (others.length > 0)
        sets.push(segments("other change", verticals(others), color.good, [3, 3]));
      return sets;
    },
  });
}

function changeTable(history) {
  return table(
      "Changes",
      [
        {
          title: "Commit",
          value: (one) => one.index,
          cell: (one) => el("span", {class: "mono"}, shortCommit(one.commit))
        },
        {
          title: "After",
          value: (one) => one.after_commit,
          cell: (one) => el("span", {class: "mono"}, shortCommit(one.after_commit))
        },
        {title: "State", value: (one) => one.state, cell: (one) => stateBadge(one.state)},
        {
          title: "Change",
          value: (one) => one.ratio,
          number: true,
          cell: (one) => change(one.ratio)
        },
        {
          title: "Before",
          value: (one) => one.before_seconds,
          number: true,
          cell: (one) => seconds(one.before_seconds)
        },
        {
          title: "After it",
          value: (one) => one.after_seconds,
          number: true,
          cell: (one) => seconds(one.after_seconds)
        },
        {
          title: "p",
          value: (one) => one.p_value,
          number: true,
          cell: (one) => one.p_value.toPrecision(2)
        },
        {
          title: "Device",
          value: (one) => one.device_moved,
          cell: (one) => one.device_moved ? "its canary moved too" : "steady"
        },
      ],
      history.changes, {sort: 0, down: true, empty: "The level has not changed."});
}

function acknowledgedTable(list) {
  return table(
      "Acknowledged changes",
      [
        {
          title: "Commit",
          value: (one) => one.commit,
          cell: (one) => el("span", {class: "mono"}, shortCommit(one.commit))
        },
        {title: "Reason", value: (one) => one.reason, wrap: true, cell: (one) => one.reason},
        {title: "Who", value: (one) => one.user, cell: (one) => one.user},
        {title: "When", value: (one) => one.at, cell: (one) => date(one.at)},
      ],
      list);
}

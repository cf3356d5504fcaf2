// The candidates of a job or a workload, from the API's columns.

// How each status is drawn: by shape as well as by colour.
export const LOOKS = [
  {status: "ok", name: "ok", series: 0, style: "circle", filled: true},
  {status: "stopped", name: "ok, stopped early", series: 7, style: "circle", filled: false},
  {status: "wrong_result", name: "wrong result", series: 4, style: "crossRot", filled: false},
  {status: "run_error", name: "run error", series: 1, style: "triangle", filled: true},
  {status: "run_timeout", name: "run timeout", series: 6, style: "rectRot", filled: true},
  {status: "compile_error", name: "compile error", series: 3, style: "rect", filled: true},
  {status: "compile_timeout", name: "compile timeout", series: 5, style: "rect", filled: false},
  {status: "invalid_schedule", name: "invalid schedule", series: 3, style: "star", filled: false},
  {status: "device_lost", name: "device lost", series: 7, style: "cross", filled: false},
];

// [{record, workload, target, device, job, status, seconds, low, high, rank, confirmed, counts,
//   library, sketch, sequence, score, at, compile_seconds, unsteady}], in the
// order in which they were recorded. `seconds` is null where it was not timed;
// `counts`: it may be the best.
export class Candidates {
  constructor() {
    this.all = [];
    this.seen = new Set();
  }

  add(columns) {
    for (let i = 0; i < columns.count; ++i) {
      if (this.seen.has(columns.record[i])) continue;
      this.seen.add(columns.record[i]);
      const task = columns.tasks[columns.task[i]];
      this.all.push({
        record: columns.record[i],
        workload: task.workload,
        target: task.target,
        job: columns.jobs[columns.job[i]],
        device: columns.devices[columns.device[i]],
        status: columns.statuses[columns.status[i]],
        fingerprint: columns.fingerprints[columns.fingerprint[i]],
        seconds: columns.seconds[i],
        low: columns.low[i],
        high: columns.high[i],
        rank: columns.rank[i],
        confirmed: columns.confirmed[i] === 1,
        counts: columns.rank[i] !== null,
        stopped: columns.stopped_early[i] === 1,
        unsteady: columns.unsteady[i] === 1,
        library: columns.library[i] === 1,
        sketch: columns.sketch[i],
        sequence: columns.sequence[i],
        score: columns.score[i],
        compile_seconds: columns.compile_seconds[i],
        at: columns.at[i],
      });
    }
    this.all.sort((a, b) => a.record - b.record);
    return this;
  }

  of(task) {
    return task === null ?
        this.all :
        this.all.filter((one) => one.workload === task.workload && one.target === task.target);
  }
}

export function lookOf(candidate) {
  const status = candidate.status === "ok" && candidate.stopped ? "stopped" : candidate.status;
  return LOOKS.find((look) => look.status === status) ?? LOOKS[0];
}

// The best of all so far, after each candidate that was better: [{candidate, index}].
// A median that was measured again replaces the first, lucky one.
export function improvements(list) {
  const found = [];
  let best = Infinity;
  list.forEach((candidate, index) => {
    if (!candidate.counts) return;
    const time = timeOf(candidate);
    if (time >= best) return;
    best = time;
    found.push({candidate, index});
  });
  return found;
}

// The median of all that is known: the confirmed one, else the first.
export function timeOf(candidate) {
  return candidate.confirmed ? candidate.rank : candidate.seconds;
}

export function bestOf(list) {
  let best = null;
  for (const one of list) {
    if (one.counts && (best === null || timeOf(one) < timeOf(best))) best = one;
  }
  return best;
}

// Spearman's, of two lists of equal length; null: too few, or all are equal.
export function rankCorrelation(a, b) {
  if (a.length < 3) return null;
  const x = ranks(a), y = ranks(b);
  const mean = (a.length + 1) / 2;
  let xy = 0, xx = 0, yy = 0;
  for (let i = 0; i < a.length; ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) ** 2;
    yy += (y[i] - mean) ** 2;
  }
  return xx > 0 && yy > 0 ? xy / Math.sqrt(xx * yy) : null;
}

// From 1; equal values have the mean of their ranks.
function ranks(list) {
  const order = list.map((value, index) => index).sort((a, b) => list[a] - list[b]);
  const out = new Array(list.length);
  for (let i = 0; i < order.length;) {
    let end = i;
    while (end + 1 < order.length && list[order[end + 1]] === list[order[i]]) ++end;
    for (let j = i; j <= end; ++j) out[order[j]] = (i + end) / 2 + 1;
    i = end + 1;
  }
  return out;
}

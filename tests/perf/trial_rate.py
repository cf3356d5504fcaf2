#!/usr/bin/env python3
"""Trials per second, and the time of their steps.

Tunes each entry on a fresh farm and reads the worker's timeline. "all" counts
everything from `tune run` to its end, including reference, baseline and
finalists; "sustained" is from the first trial's end to the last one's. The
shares are of the sustained time: "busy" if a measurement runs or a builder
compiles, "measure" if a child process runs, "judge" if its outputs are compared
(including its start), "compile" if a builder works (several may, at once).

  tests/perf/trial_rate.py [--only softmax] [--trials 128]
"""

import json
import os
import sys
import tempfile

import tuning


def union(spans, start, end):
    """Seconds of [start, end] that at least one span covers."""
    total, reached = 0.0, start
    for a, b in sorted(spans):
        a, b = max(a, reached), min(b, end)
        if b > a:
            total += b - a
            reached = b
    return total


def rates(entry, trials, seconds, lines, best_seconds):
    """Of the timeline's `lines`; those of trials are in `trials`."""
    ours = [line for line in lines if line["candidate"] in trials]
    ends = sorted((line["ran"] or line["built"])[1] for line in ours)
    start, end = ends[0], ends[-1]
    wall = end - start
    builds = [line["built"] for line in lines if line["built"]]
    runs = [line["ran"] for line in lines if line["ran"]]
    measure = sum(line["child"] for line in ours[1:])
    measured = sum(b - a for a, b in (r["ran"] for r in ours[1:] if r["ran"]))
    return {
        "entry": entry.name, "trials": len(ours), "best_seconds": best_seconds,
        "all_per_second": len(ours) / seconds,
        "sustained_per_second": (len(ours) - 1) / wall if wall else 0,
        "busy": union(builds + runs, start, end) / wall if wall else 0,
        "measure": measure / wall if wall else 0,
        "judge": (measured - measure) / wall if wall else 0,
        "compile": sum(min(b, end) - max(a, start) for a, b in builds
                       if b > start and a < end) / wall if wall else 0,
        "compile_seconds": sum(b - a for a, b in (
            line["built"] for line in ours if line["built"])) / len(ours),
        "run_seconds": measured / max(1, len(ours) - 1),
    }


def main():
    parser = tuning.parser(__doc__, trials=128)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    results = []
    if not args.json:
        print("{:24} {:>9} {:>6} {:>9} {:>6} {:>8} {:>6} {:>8} {:>10} {:>7}"
              .format("entry", "best ms", "all/s", "sustained", "busy",
                      "measure", "judge", "compile", "compile ms", "run ms"))
    for entry in tuning.chosen(args):
        with tempfile.TemporaryDirectory(prefix="tilefarm-perf-") as folder:
            db = tuning.database(args, folder, entry, args.seed)
            timeline = tuning.kept_timeline(db)
            records, last, seconds = tuning.tune(
                args, tuning.write_program(entry, folder), seed=args.seed,
                db=db, timeline=timeline)
            with open(timeline) as file:
                lines = [json.loads(line) for line in file]
        result = rates(entry, {r["candidate_id"] for r in records}, seconds,
                       lines, last["best_seconds"])
        results.append(result)
        if not args.json:
            print("{:24} {:9.4f} {:6.1f} {:9.1f} {:6.3f} {:8.3f} {:6.3f} "
                  "{:8.3f} {:10.1f} {:7.1f}".format(
                      entry.name, result["best_seconds"] * 1e3,
                      result["all_per_second"],
                      result["sustained_per_second"], result["busy"],
                      result["measure"], result["judge"], result["compile"],
                      result["compile_seconds"] * 1e3,
                      result["run_seconds"] * 1e3), flush=True)
    short = [r for r in results if r["best_seconds"] < 2e-3]
    summary = {
        "benchmark": "trial_rate", "cores": args.cores, "trials": args.trials,
        "entries": results,
        "least_sustained_below_2_ms": min(
            (r["sustained_per_second"] for r in short), default=None),
        "least_busy": min((r["busy"] for r in results), default=None)}
    if args.json:
        print(json.dumps(summary))
    else:
        print("below 2 ms: at least {} trials a second; busy at least {}"
              .format(summary["least_sustained_below_2_ms"],
                      summary["least_busy"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

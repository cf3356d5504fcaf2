#!/usr/bin/env python3
"""Compares the recorded time of every winner with a new measurement.

Tunes the suite's entries (or uses the records of --db), builds each with tunec, and
times it in several new processes. Prints the median of their medians over the
record: fresh / recorded, 1 if a user gets the recorded speed. Both sides run on
the last core without other load, with warm caches or, if the parameters exceed
the last-level cache, from memory.

Other guests of the host may slow its memory by a third for minutes. With
--by-turns, the farm records the winner's schedule again before each of the
processes: "by turns" is then the median of fresh / recorded.

  tests/perf/recorded_vs_fresh.py [--only gemm] [--trials 128]
  tests/perf/recorded_vs_fresh.py --db suite.db --no-tuning --by-turns
"""

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time

import tuning
from farm import Farm


def record_again(args, farm, program, trace):
    """Seconds that the farm records of the schedule now."""
    return farm.tune("measure", program, "--trace", trace, "--target",
                     tuning.target(args))[-1]["median_seconds"]


def main():
    parser = tuning.parser(__doc__, trials=128)
    parser.add_argument("--db", help="keep records here; reused")
    parser.add_argument("--no-tuning", action="store_true",
                        help="only what --db has")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--pause", type=float, default=0.3,
                        help="seconds between processes")
    parser.add_argument("--by-turns", action="store_true",
                        help="record again before each process")
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(
            prefix="tilefarm-perf-") as folder, contextlib.ExitStack() as stack:
        farm = stack.enter_context(Farm(args.bin)) if args.by_turns else None
        for entry in tuning.chosen(args):
            program = tuning.write_program(entry, folder)
            db = args.db or tuning.database(args, folder, entry, args.seed)
            if not args.no_tuning:
                tuning.tune(args, program, seed=args.seed, db=db)
            record = tuning.best_record(args, program, db)
            library = os.path.join(folder, entry.name + ".so")
            tuning.build(args, program, db, library)
            trace = os.path.join(folder, entry.name + ".trace")
            with open(trace, "w") as file:
                file.write(record["trace"])
            runs, again = [], []
            for _ in range(args.processes):
                # Apart, so that a moment's trouble is not in all of them.
                time.sleep(args.pause)
                if farm:
                    again.append(record_again(args, farm, program, trace))
                runs.append(tuning.time_libraries(
                    args, entry, [(library, tuning.is_packed(record))]))
            timed = [r["libraries"][0] for r in runs]
            medians = sorted(t["median_seconds"] for t in timed)
            fresh = statistics.median(medians)
            result = {
                "entry": entry.name, "recorded": record["median_seconds"],
                "interval": [record["ci_low_seconds"],
                             record["ci_high_seconds"]],
                "fresh": fresh, "processes": medians,
                "ratio": fresh / record["median_seconds"],
                # Of all samples: something else used the core.
                "shared": sum(t["shared"] for t in timed) / sum(
                    len(t["seconds"]) for t in timed),
                "canary": statistics.median(
                    r["canary_seconds"] for r in runs)}
            if farm:
                result["recorded_again"] = again
                result["ratio_by_turns"] = statistics.median(
                    t["median_seconds"] / a for t, a in zip(timed, again))
            results.append(result)
            if not args.json:
                print("{:24} recorded {:9.4f} ms, fresh {:9.4f} "
                      "({:.4f} to {:.4f}), ratio {:.3f}, core shared {:.0%}".format(
                          entry.name, result["recorded"] * 1e3, fresh * 1e3,
                          medians[0] * 1e3, medians[-1] * 1e3,
                          result["ratio"], result["shared"]) + (
                              ", by turns {ratio_by_turns:.3f}".format(**result)
                              if farm else ""), flush=True)
    ratios = [r["ratio"] for r in results]
    summary = {
        "benchmark": "recorded_vs_fresh", "cores": args.cores,
        "trials": args.trials, "processes": args.processes, "entries": results,
        "median_ratio": statistics.median(ratios),
        "worst_ratio": max(ratios, key=lambda r: max(r, 1 / r))}
    if args.json:
        print(json.dumps(summary))
    else:
        print("fresh / recorded: median {median_ratio:.3f}, worst "
              "{worst_ratio:.3f}".format(**summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())

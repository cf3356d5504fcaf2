#!/usr/bin/env python3
"""Whether tuning twice with different seeds ends with the same speed.

Tunes each entry with two seeds, builds both winners, and times them in turns,
each time in a new process, so that what the machine did while the one was tuned
does not count: the ratio of the slower to the faster, and the share of entries
where it is at most 1.05.

  tests/perf/repeatability.py [--only gemm conv] [--trials 128]
"""

import json
import os
import statistics
import sys
import tempfile

import tuning


def main():
    parser = tuning.parser(__doc__, trials=128)
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 1])
    parser.add_argument("--within", type=float, default=1.05)
    parser.add_argument("--processes", type=int, default=5)
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="tilefarm-perf-") as folder:
        for entry in tuning.chosen(args):
            program = tuning.write_program(entry, folder)
            libraries, packed = [], []
            for seed in args.seeds:
                db = tuning.database(args, folder, entry, seed)
                tuning.tune(args, program, seed=seed, db=db)
                libraries.append(
                    os.path.join(folder, f"{entry.name}-{seed}.so"))
                packed.append(tuning.is_packed(
                    tuning.best_record(args, program, db)))
                tuning.build(args, program, db, libraries[-1])
            times = [[], []]
            for _ in range(args.processes):
                for i in (0, 1):
                    times[i].append(tuning.time_library(
                        args, entry, libraries[i], packed[i])[
                            "median_seconds"])
            seconds = [statistics.median(t) for t in times]
            results.append({"entry": entry.name, "seconds": seconds,
                            "ratio": max(seconds) / min(seconds)})
            if not args.json:
                print("{:24} {:9.4f} {:9.4f} ms, {:.3f}".format(
                    entry.name, seconds[0] * 1e3, seconds[1] * 1e3,
                    results[-1]["ratio"]), flush=True)
    alike = [r["ratio"] <= args.within for r in results]
    summary = {
        "benchmark": "repeatability", "cores": args.cores,
        "trials": args.trials, "seeds": args.seeds, "within": args.within,
        "entries": results, "share_of_entries": sum(alike) / len(alike)}
    if args.json:
        print(json.dumps(summary))
    else:
        print(f"{summary['share_of_entries']:.0%} of {len(alike)} entries end "
              f"within {args.within - 1:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Whether tuning twice with different seeds ends with the same speed.

Tunes each entry with two seeds, builds both winners, and times them alternately on
the same buffers, in several new processes, so that neither the machine's load
during tuning nor the location of buffers matters. Prints the median of the
processes' ratios, slower over faster, and the share of entries where it is at
most 1.05.

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
            libraries = []
            for seed in args.seeds:
                db = tuning.database(args, folder, entry, seed)
                tuning.tune(args, program, seed=seed, db=db)
                path = os.path.join(folder, f"{entry.name}-{seed}.so")
                tuning.build(args, program, db, path)
                libraries.append((path, tuning.is_packed(
                    tuning.best_record(args, program, db))))
            pairs = []
            for _ in range(args.processes):
                timed = tuning.time_libraries(args, entry, libraries)
                pairs.append([t["median_seconds"] for t in timed["libraries"]])
            ratio = statistics.median(b / a for a, b in pairs)
            results.append({
                "entry": entry.name,
                "seconds": [statistics.median(s) for s in zip(*pairs)],
                "processes": pairs, "ratio": max(ratio, 1 / ratio)})
            seconds = results[-1]["seconds"]
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

#!/usr/bin/env python3
"""Whether tuning twice with different seeds, or by two builds of Tilefarm, ends with
the same speed.

Tunes each entry with two seeds, builds both winners, and times them alternately on
the same buffers, in several new processes, so that neither the machine's load
during tuning nor the location of buffers matters. Prints the median of the
processes' ratios, slower over faster, and the share of entries where it is at
most 1.05.

With --against DIR, the programs in DIR tune and build the first winner, with the same
seed; the ratio is then the time of theirs over that of ours, and the last line has its
geometric mean: above one, ours is faster.

  tests/perf/repeatability.py [--only gemm conv] [--trials 128]
  tests/perf/repeatability.py --against ../before/build/release/bin
"""

import copy
import json
import math
import os
import statistics
import sys
import tempfile

import tuning


def main():
    parser = tuning.parser(__doc__, trials=128)
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 1])
    parser.add_argument("--against", metavar="DIR",
                        help="programs of another build")
    parser.add_argument("--within", type=float, default=1.05)
    parser.add_argument("--processes", type=int, default=5)
    args = parser.parse_args()
    sides = [(args, seed) for seed in args.seeds]
    if args.against:
        other = copy.copy(args)
        other.bin = args.against
        sides = [(other, args.seeds[0]), (args, args.seeds[0])]
    results = []
    with tempfile.TemporaryDirectory(prefix="tilefarm-perf-") as folder:
        for entry in tuning.chosen(args):
            program = tuning.write_program(entry, folder)
            libraries = []
            for number, (side, seed) in enumerate(sides):
                db = tuning.database(
                    args, folder, entry, f"against-{number}" if args.against
                    else seed)
                tuning.tune(side, program, seed=seed, db=db)
                path = os.path.join(folder, f"{entry.name}-{number}.so")
                tuning.build(side, program, db, path)
                libraries.append((path, tuning.is_packed(
                    tuning.best_record(side, program, db))))
            pairs = []
            for _ in range(args.processes):
                timed = tuning.time_libraries(args, entry, libraries)
                pairs.append([t["median_seconds"] for t in timed["libraries"]])
            if args.against:
                ratio = statistics.median(a / b for a, b in pairs)
            else:
                ratio = statistics.median(b / a for a, b in pairs)
                ratio = max(ratio, 1 / ratio)
            results.append({
                "entry": entry.name,
                "seconds": [statistics.median(s) for s in zip(*pairs)],
                "processes": pairs, "ratio": ratio})
            seconds = results[-1]["seconds"]
            if not args.json:
                print("{:24} {:9.4f} {:9.4f} ms, {:.3f}".format(
                    entry.name, seconds[0] * 1e3, seconds[1] * 1e3,
                    results[-1]["ratio"]), flush=True)
    alike = [max(r["ratio"], 1 / r["ratio"]) <= args.within for r in results]
    mean = math.exp(statistics.mean(math.log(r["ratio"]) for r in results))
    summary = {
        "benchmark": "repeatability", "cores": args.cores,
        "trials": args.trials, "seeds": args.seeds, "within": args.within,
        "entries": results, "share_of_entries": sum(alike) / len(alike),
        "geometric_mean": mean}
    if args.json:
        print(json.dumps(summary))
    else:
        print(f"{summary['share_of_entries']:.0%} of {len(alike)} entries end "
              f"within {args.within - 1:.0%}, geometric mean {mean:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

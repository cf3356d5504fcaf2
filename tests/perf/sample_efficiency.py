#!/usr/bin/env python3
"""The number of trials that a tuning needs for most of its gain.

Tunes each entry with several seeds, and prints the number of trials until 95 % of
the final speed, that of the best after all --trials: the median of the seeds,
and the share of the entries where it is at most --within.

  tests/perf/sample_efficiency.py [--only gemm conv] [--trials 256] [--seeds 3]
"""

import json
import statistics
import sys
import tempfile

import tuning


def trials_to(share, values):
    """The first trial (from 1) after which the speed is that share of the
    last."""
    return next(i for i, v in enumerate(values, 1)
                if values[-1] >= share * v)


def main():
    parser = tuning.parser(__doc__, trials=256)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.95)
    parser.add_argument("--within", type=int, default=128)
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="tilefarm-perf-") as folder:
        for entry in tuning.chosen(args):
            program = tuning.write_program(entry, folder)
            needed, final = [], []
            for seed in range(args.seeds):
                db = tuning.database(args, folder, entry, seed)
                values = tuning.best_so_far(
                    tuning.tune(args, program, seed=seed, db=db)[0])
                needed.append(trials_to(args.share, values))
                final.append(values[-1])
            results.append({"entry": entry.name, "needed": needed,
                            "median_needed": statistics.median(needed),
                            "final_seconds": final})
            if not args.json:
                print("{:24} {:5.0f} trials ({}), final {} ms".format(
                    entry.name, results[-1]["median_needed"],
                    " ".join(map(str, needed)),
                    " ".join(f"{s * 1e3:.4f}" for s in final)), flush=True)
    within = [r["median_needed"] <= args.within for r in results]
    summary = {
        "benchmark": "sample_efficiency", "cores": args.cores,
        "trials": args.trials, "seeds": args.seeds, "share": args.share,
        "within": args.within, "entries": results,
        "share_of_entries": sum(within) / len(within)}
    if args.json:
        print(json.dumps(summary))
    else:
        print(f"{summary['share_of_entries']:.0%} of {len(within)} entries "
              f"reach {args.share:.0%} within {args.within} trials")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Best-so-far of XGBoost + evolution against random sampling at equal trials.

Every run has a fresh database. Prints, for each workload, the median over the
seeds of (best of random) / (best of guided) after 32, 64 and 128 trials: above
one, guided is ahead.

  tests/perf/guided_vs_random.py [--bin build/release/bin] [--seeds 5]
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

import tuning


def curve(args, program, seed, guided):
    """Best seconds after each trial."""
    search = "evolutionary" if guided else "random"
    model = "xgboost" if guided else "random"
    records, _, _ = tuning.tune(args, program, seed=seed, options=[
        "--search", search, "--model", model])
    return tuning.best_so_far(records)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--programs", nargs="+", default=[
        "gemm_512", "conv3x3_256_14"],
        help="files, or names of the suite's entries")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    folder = tempfile.TemporaryDirectory(prefix="tilefarm-perf-")
    for i, program in enumerate(args.programs):
        if program in tuning.ENTRIES:
            args.programs[i] = tuning.write_program(tuning.ENTRIES[program],
                                                    folder.name)
    marks = [m for m in (32, 64, 128, 256) if m <= args.trials]
    results = []
    for program in args.programs:
        ratios = {mark: [] for mark in marks}
        for seed in range(args.seeds):
            guided = curve(args, program, seed, True)
            blind = curve(args, program, seed, False)
            for mark in marks:
                ratios[mark].append(
                    blind[min(mark, len(blind)) - 1]
                    / guided[min(mark, len(guided)) - 1])
        results.append({
            "benchmark": "guided_vs_random", "program": os.path.basename(program),
            "seeds": args.seeds,
            "median_ratio": {m: statistics.median(r)
                             for m, r in ratios.items()},
            "ratios": ratios})
        if not args.json:
            print(os.path.basename(program))
            for mark in marks:
                each = " ".join(f"{r:.2f}" for r in ratios[mark])
                print(f"  at {mark:4d} trials: random / guided = "
                      f"{statistics.median(ratios[mark]):.3f}  ({each})")
    if args.json:
        print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())

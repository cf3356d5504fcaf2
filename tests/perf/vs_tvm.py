#!/usr/bin/env python3
"""Tilefarm against TVM MetaSchedule on the Ansor classes, trial for trial.

Each entry is tuned by both from the same text for --trials on --cores; then
both results are timed in one process, interleaved, on the same inputs, and
their outputs compared. Prints ratios TVM / ours (above one: ours is faster)
and seconds of tuning per trial of both.

TVM is no dependency of Tilefarm; make a Python that has it:
  python3 -m venv tvm && tvm/bin/pip install numpy apache-tvm==0.27.0.post1 \\
      apache-tvm-ffi==0.1.14.post1 xgboost==1.7.6 psutil cloudpickle tornado
  cmake --build --preset release --target call_timer
  tests/perf/vs_tvm.py --python tvm/bin/python --tvm-dir tvm-results

TVM takes seconds a trial, so its databases are kept in --tvm-dir, a folder an
entry, and only what is missing to --trials is tuned: the whole comparison can
be made in pieces with --only. --db keeps ours.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "suite"))
from farm import Farm, timed  # noqa: E402
from programs import ENTRIES, is_wanted  # noqa: E402

# Of the root mean square of the output: far above rounding, far below a wrong
# term.
TOLERANCE = 1e-3


def side(python, what, job):
    """Runs tvm_side.py; its last line is the answer."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as spec:
        json.dump(job, spec)
        spec.flush()
        out = subprocess.run(
            [python, os.path.join(HERE, "tvm_side.py"), what, spec.name],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if out.returncode != 0:
        sys.exit(f"tvm_side.py {what} failed:\n{out.stderr[-2000:]}")
    return json.loads(out.stdout.strip().splitlines()[-1])


def tune_tvm(args, entry):
    """The library of TVM's best and the seconds it spent on each trial."""
    folder = os.path.abspath(os.path.join(args.tvm_dir, entry.name))
    state_path = os.path.join(folder, "state.json")
    state = {"records": 0, "seconds": 0.0, "tuned": 0}
    if os.path.exists(state_path):
        with open(state_path) as file:
            state = json.load(file)
    if state["records"] < args.trials and not args.no_tuning:
        answer = side(args.python, "tune", {
            "program": entry.text, "folder": folder, "trials": args.trials,
            "cpu": args.cpu, "cores": args.cores, "seed": args.seed})
        state["records"] = answer["records"]
        state["seconds"] += answer["seconds"]
        state["tuned"] += answer["added"]
        state["version"] = answer["version"]
        with open(state_path, "w") as file:
            json.dump(state, file)
    library = os.path.join(folder, "best.so")
    if not os.path.exists(library):
        return None, None, state
    per_trial = state["seconds"] / state["tuned"] if state["tuned"] else None
    return library, per_trial, state


def tune_ours(args, entry, folder, db):
    """The library of our best and the seconds a trial, all included."""
    source = os.path.join(folder, entry.name + ".py")
    with open(source, "w") as file:
        file.write(entry.text)
    target = f"host,cores={args.cores}"
    per_trial = None
    if not args.no_tuning:
        with Farm(args.bin, db=db) as farm:
            lines, seconds = timed(lambda: farm.tune(
                "run", source, "--target", target, "--trials",
                str(args.trials), "--seed", str(args.seed)))
            per_trial = seconds / max(lines[-1]["trials_done"], 1)
    library = os.path.join(folder, entry.name + ".so")
    subprocess.run(
        [os.path.join(args.bin, "tunec"), source, "--target", target, "--db",
         db, "--require-tuned", "-o", library], check=True,
        stderr=subprocess.DEVNULL)
    return library, per_trial


def number(value, pattern):
    return pattern.format(value) if value is not None else "-"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", required=True,
                        help="an interpreter that can import tvm")
    parser.add_argument("--tvm-dir", required=True)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--only", nargs="+", default=[],
                        help="entries of these names or name parts")
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--cpu", default="", help="TVM's -mcpu; default: the "
                        "one that ours resolves for the host")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--db", help="keep our records here")
    parser.add_argument("--no-tuning", action="store_true",
                        help="only what --db and --tvm-dir have")
    parser.add_argument("--only-tvm", action="store_true",
                        help="tune TVM's side and stop")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    timer = os.path.abspath(
        os.path.join(args.bin, "..", "tests", "bin", "call_timer.so"))
    if not os.path.exists(timer):
        sys.exit(f"{timer} is missing: cmake --build --preset release "
                 "--target call_timer")
    if not args.cpu:
        args.cpu = subprocess.run(
            [args.python, "-c", "import tvm\nprint(tvm.get_global_func("
             "'target.llvm_get_system_cpu')())"], stdout=subprocess.PIPE,
            text=True, check=True).stdout.split()[-1]
    entries = [e for e in ENTRIES.values() if e.peers == "tvm" and
               is_wanted(e.name, args.only)]
    results = []
    if not args.json:
        print(f"{platform.node()}, {args.cores} core(s), {args.trials} trials,"
              f" TVM's -mcpu={args.cpu}")
        print("{:14} {:>10} {:>10} {:>7} {:>8} {:>9} {:>9} {:>10}".format(
            "entry", "ours ms", "TVM ms", "ratio", "GFLOPS", "s/trial",
            "TVM's", "difference"))
    with tempfile.TemporaryDirectory() as folder:
        db = args.db or os.path.join(folder, "ours.db")
        for entry in entries:
            theirs, tvm_per_trial, state = tune_tvm(args, entry)
            if args.only_tvm:
                print(entry.name, json.dumps(state), flush=True)
                continue
            if theirs is None:
                continue
            ours, per_trial = tune_ours(args, entry, folder, db)
            both = side(args.python, "time", {
                "ours": ours, "symbol": entry.symbol,
                "theirs": theirs, "shapes": entry.shapes, "timer": timer,
                "rounds": args.rounds, "cores": args.cores})
            difference = both["largest_difference"] / both["rms"]
            row = {"entry": entry.name, "ours_seconds": both["ours"],
                   "tvm_seconds": both["theirs"],
                   "ratio": both["theirs"] / both["ours"],
                   "gflops": entry.flops / both["ours"] / 1e9,
                   "seconds_per_trial": per_trial,
                   "tvm_seconds_per_trial": tvm_per_trial,
                   "tvm_trials": state["records"],
                   "difference": difference,
                   "same": both["finite"] and difference <= TOLERANCE}
            results.append(row)
            if not args.json:
                print("{:14} {:>10.4f} {:>10.4f} {:>7.3f} {:>8.1f} {:>9} {:>9}"
                      " {:>10.1e}{}".format(
                          row["entry"], row["ours_seconds"] * 1e3,
                          row["tvm_seconds"] * 1e3, row["ratio"],
                          row["gflops"], number(per_trial, "{:.4f}"),
                          number(tvm_per_trial, "{:.3f}"), difference,
                          "" if row["same"] else "  DIFFERENT"), flush=True)
    if args.only_tvm or not results:
        return 0
    ratios = [r["ratio"] for r in results]
    speeds = [r["tvm_seconds_per_trial"] / r["seconds_per_trial"]
              for r in results if r["seconds_per_trial"]
              and r["tvm_seconds_per_trial"]]
    summary = {
        "benchmark": "vs_tvm", "trials": args.trials, "cores": args.cores,
        "cpu": args.cpu, "entries": results,
        "geometric_mean": math.exp(sum(map(math.log, ratios)) / len(ratios)),
        "worst": min(ratios),
        "tuning_speed": math.exp(sum(map(math.log, speeds)) / len(speeds))
        if speeds else None,
        "all_same": all(r["same"] for r in results)}
    if args.json:
        print(json.dumps(summary))
    else:
        print("geometric mean TVM / ours {:.3f}, worst {:.3f}; TVM's seconds a "
              "trial are {} times ours".format(
                  summary["geometric_mean"], summary["worst"],
                  number(summary["tuning_speed"], "{:.1f}")))
    return 0 if summary["all_same"] else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The time that tuning a model needs for most of its gain.

Tunes the models of DIR in the given order on one farm, each with --trials, and then,
with --alone, the last of them on an empty database. With --repeat, all but the last
model are tuned once, and the last one so often on copies of their database, in turns
with the empty one; what is printed are medians. A model's speed at a moment is one
over the sum of its kernels' best times, each as often as the model calls it; a kernel
without a record counts with its default schedule, from the start on. Prints, for each
job, the seconds and trials until the speed is 95 % of the last one; for a model that is
tuned more than once, of the median of the last ones. "first" is the time of the model
before the first record of the job, "final" after it.

  tests/perf/model_tuning.py DIR resnet50 mobilenet_v2 --alone --trials 1000 --repeat 3
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from farm import Farm  # noqa: E402


def projected_seconds(tasks, defaults):
    """The time of the model, given that of each default schedule."""
    total = 0
    for task, default in zip(tasks, defaults):
        total += min(task["best_seconds"] or default, default) * task["weight"]
    return total


def tune(farm, model, arguments):
    """[(seconds since the submission, trials, projected seconds), ...], and the
    seconds of the job."""
    updates, start = [], time.monotonic()
    process = subprocess.Popen(
        [farm.program("tune"), "run", model, "--target",
         f"host,cores={arguments.cores}", "--trials", str(arguments.trials),
         "--server", farm.address, "--json"], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        update = json.loads(line)
        if update.get("tasks"):
            updates.append((time.monotonic() - start, update))
    if process.wait() != 0:
        sys.exit(f"tune run {model} failed")
    seconds = time.monotonic() - start
    # Where the default schedule failed, the best one counts from the start on.
    defaults = [task["default_seconds"] or task["best_seconds"]
                for task in updates[-1][1]["tasks"]]
    if not all(defaults):
        sys.exit(f"{model}: a kernel has no time")
    return [(when, update["trials_done"],
             projected_seconds(update["tasks"], defaults))
            for when, update in updates], seconds


def summary(points, seconds, share, final):
    """`final`: the time of the model that the share is of."""
    # The first moment from which on the speed stays at that share; None if it
    # never is.
    reached = (None, None)
    for point in reversed(points):
        if point[2] * share > final:
            break
        reached = point
    return {"seconds_to_share": reached[0], "trials_to_share": reached[1],
            "job_seconds": seconds, "trials": points[-1][1],
            "first_seconds": points[0][2], "final_seconds": points[-1][2]}


def median(values):
    """With None as more than all others."""
    ordered = sorted(values, key=lambda value: (value is None, value))
    return ordered[len(ordered) // 2] if None in values else statistics.median(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", help="folder with NAME.onnx")
    parser.add_argument("names", nargs="+", help="tuned in this order")
    parser.add_argument("--alone", action="store_true",
                        help="the last one also on an empty database")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--trials", type=int, default=1000, help="of each job")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.95)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    *before, last = arguments.names
    path = {name: os.path.join(arguments.models, name + ".onnx")
            for name in arguments.names}
    jobs = {}  # label: (name, [points and seconds, one a job])

    def add(farm, name, before):
        label = name + (f" after {', '.join(before)}" if before else "")
        jobs.setdefault(label, (name, []))[1].append(
            tune(farm, path[name], arguments))

    with tempfile.TemporaryDirectory() as folder:
        shared = os.path.join(folder, "shared")
        os.mkdir(shared)
        if before:
            with Farm(arguments.bin, db=os.path.join(shared, "tune.db")) as farm:
                for i, name in enumerate(before):
                    add(farm, name, before[:i])
        for i in range(arguments.repeat):
            copy = os.path.join(folder, f"copy{i}")
            shutil.copytree(shared, copy, ignore=shutil.ignore_patterns("*.lock"))
            with Farm(arguments.bin, db=os.path.join(copy, "tune.db")) as farm:
                add(farm, last, before)
            if arguments.alone and before:
                with Farm(arguments.bin) as farm:
                    add(farm, last, [])
    finals = {}
    for name, runs in jobs.values():
        finals.setdefault(name, []).extend(run[0][-1][2] for run in runs)
    results = []
    for label, (name, runs) in jobs.items():
        parts = [summary(*run, arguments.share, statistics.median(finals[name]))
                 for run in runs]
        result = {"job": label, "jobs": len(runs),
                  **{key: median([part[key] for part in parts]) for key in parts[0]},
                  "all_seconds_to_share": [p["seconds_to_share"] for p in parts]}
        results.append(result)
        if not arguments.json:
            reached = ("not reached" if result["seconds_to_share"] is None else
                       "after {seconds_to_share:.0f} s and {trials_to_share:.0f} "
                       "trials".format(**result))
            every = ", ".join("never" if s is None else f"{s:.0f}"
                              for s in result["all_seconds_to_share"])
            print(f"{label}: {arguments.share:.0%} of the final speed {reached} "
                  f"({every}); " + "job {:.0f} s, {:.0f} trials, {:.2f} -> {:.2f} ms"
                  .format(result["job_seconds"], result["trials"],
                          result["first_seconds"] * 1e3,
                          result["final_seconds"] * 1e3), flush=True)
    if arguments.json:
        print(json.dumps({"benchmark": "model_tuning", "cores": arguments.cores,
                          "share": arguments.share, "jobs": results}))


if __name__ == "__main__":
    main()

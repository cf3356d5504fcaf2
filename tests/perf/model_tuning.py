#!/usr/bin/env python3
"""The time that tuning a model needs for most of its gain.

Tunes the models of DIR in the given order on one farm, each with --trials, and then,
with --alone, the last of them on an empty database. A model's speed at a moment is one
over the sum of its kernels' best times, each as often as the model calls it; a kernel
without a record counts with its default schedule. Prints, for each job, the seconds and
trials until the speed is 95 % of the last one; for a model that is tuned twice, of the
better of both. "first" is the time of the model before the first record of the job,
"final" after it.

  tests/perf/model_tuning.py DIR resnet50 mobilenet_v2 --alone --trials 1000
"""

import argparse
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from farm import Farm  # noqa: E402


def projected_seconds(update):
    """The time of the model, None while it is not known of every kernel."""
    total = 0
    for task in update.get("tasks", []):
        seconds = task["best_seconds"] or task["default_seconds"]
        if not seconds:
            return None
        if task["best_seconds"] and task["default_seconds"]:
            seconds = min(task["best_seconds"], task["default_seconds"])
        total += seconds * task["weight"]
    return total or None


def tune(farm, model, arguments):
    """[(seconds since the submission, trials, projected seconds), ...]."""
    points, start = [], time.monotonic()
    process = subprocess.Popen(
        [farm.program("tune"), "run", model, "--target",
         f"host,cores={arguments.cores}", "--trials", str(arguments.trials),
         "--server", farm.address, "--json"], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        update = json.loads(line)
        projected = projected_seconds(update)
        if projected is not None:
            points.append((time.monotonic() - start, update["trials_done"],
                           projected))
    if process.wait() != 0:
        sys.exit(f"tune run {model} failed")
    return points, time.monotonic() - start


def summary(label, points, seconds, share, final):
    """`final`: the time of the model that the share is of."""
    # The first moment from which on the speed stays at that share; None if it
    # never is.
    reached = (None, None)
    for point in reversed(points):
        if point[2] * share > final:
            break
        reached = point
    return {"job": label, "seconds_to_share": reached[0],
            "trials_to_share": reached[1], "job_seconds": seconds,
            "trials": points[-1][1], "first_seconds": points[0][2],
            "final_seconds": points[-1][2]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", help="folder with NAME.onnx")
    parser.add_argument("names", nargs="+", help="tuned in this order")
    parser.add_argument("--alone", action="store_true",
                        help="the last one also on an empty database")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--trials", type=int, default=1000, help="of each job")
    parser.add_argument("--share", type=float, default=0.95)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    jobs = []
    plans = [arguments.names]
    if arguments.alone:
        plans.append(arguments.names[-1:])
    for plan in plans:
        with Farm(arguments.bin) as farm:
            for i, name in enumerate(plan):
                label = name + (f" after {', '.join(plan[:i])}" if i else "")
                points, seconds = tune(
                    farm, os.path.join(arguments.models, name + ".onnx"),
                    arguments)
                if not points:
                    sys.exit(f"{name}: no update had the times of all kernels")
                jobs.append((name, label, points, seconds))
    results = []
    for name, label, points, seconds in jobs:
        final = min(job[2][-1][2] for job in jobs if job[0] == name)
        result = summary(label, points, seconds, arguments.share, final)
        results.append(result)
        if not arguments.json:
            reached = ("not reached" if result["seconds_to_share"] is None else
                       "after {seconds_to_share:.0f} s and {trials_to_share} "
                       "trials".format(**result))
            print("{job}: {share:.0%} of the final speed {reached}; "
                  "job {job_seconds:.0f} s, {trials} trials, "
                  "{first:.2f} -> {final:.2f} ms".format(
                      share=arguments.share, reached=reached,
                      first=result["first_seconds"] * 1e3,
                      final=result["final_seconds"] * 1e3, **result),
                  flush=True)
    if arguments.json:
        print(json.dumps({"benchmark": "model_tuning", "cores": arguments.cores,
                          "share": arguments.share, "jobs": results}))


if __name__ == "__main__":
    main()

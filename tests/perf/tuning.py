"""Shared by the perf scripts: tunes entries of the suite on a farm of their own
and reads the records."""

import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "suite")]
from farm import Farm  # noqa: E402
import low_precision  # noqa: E402
from programs import ENTRIES as FLOAT32, is_wanted  # noqa: E402

ENTRIES = {**FLOAT32, **low_precision.ENTRIES}


def parser(description, trials):
    """The options that every script has."""
    result = argparse.ArgumentParser(
        description=description.splitlines()[0])
    result.add_argument("--bin", default="build/release/bin")
    result.add_argument("--only", nargs="+", default=[],
                        help="entries of these names or name parts")
    result.add_argument("--skip", nargs="+", default=[],
                        help="leave these out (a trial of gemm_2048 takes half "
                        "a second)")
    result.add_argument("--trials", type=int, default=trials)
    result.add_argument("--cores", type=int, default=1)
    result.add_argument("--json", action="store_true")
    result.add_argument("--keep", metavar="DIR",
                        help="keep each entry's tuning of each seed here, with "
                        "the worker's timeline, and take what is there: one "
                        "tuning then serves several scripts")
    return result


def chosen(args):
    return [e for e in ENTRIES.values()
            if is_wanted(e.name, args.only, ENTRIES)
            and not any(s in e.name for s in args.skip)]


def target(args):
    return f"host,cores={args.cores}"


def write_program(entry, folder):
    path = os.path.join(folder, entry.name + ".py")
    with open(path, "w") as file:
        file.write(entry.text)
    return path


def database(args, folder, entry, seed):
    """Where the records of this entry and seed go: `folder`, or --keep."""
    return os.path.join(args.keep or folder, f"{entry.name}-{seed}.db")


def kept_timeline(db):
    return db.replace(".db", ".timeline")


def tune(args, program, seed=0, db=None, timeline=None, options=()):
    """Tunes on a fresh farm. Returns the records of the job's trials in their
    order (every record has `median_seconds`, `status`, ...), the last line of
    `tune run`, and the seconds that `tune run` took. With --keep and a database
    of `database`, what was returned before is returned again, and the timeline
    is that of `kept_timeline`."""
    kept = None
    if args.keep and db and os.path.dirname(db) == args.keep:
        os.makedirs(args.keep, exist_ok=True)
        kept = db.replace(".db", ".json")
        timeline = kept_timeline(db)
        if os.path.exists(kept):
            with open(kept) as file:
                before = json.load(file)
            if before["trials"] != args.trials:
                sys.exit(f"{kept}: tuned with --trials {before['trials']}")
            return before["records"], before["last"], before["seconds"]
    with Farm(args.bin, db=db, timeline=timeline) as farm:
        start = time.monotonic()
        last = farm.tune("run", program, "--target", target(args), "--trials",
                         str(args.trials), "--seed", str(seed), *options)[-1]
        seconds = time.monotonic() - start
        records = [r for r in farm.tune("db", "export")
                   if r["job_id"] == last["job_id"]]
    records.sort(key=lambda r: (r["recorded_at"], r["sequence"]))
    if kept:
        with open(kept, "w") as file:
            json.dump({"trials": args.trials, "records": records, "last": last,
                       "seconds": seconds}, file)
    return records, last, seconds


def best_so_far(records):
    """Best seconds after each trial; infinite before the first good one."""
    best, values = float("inf"), []
    for record in records:
        if record["status"] == "ok":
            best = min(best, record["median_seconds"])
        values.append(best)
    return values


def best_record(args, program, db):
    """What `tune best` answers: the record that tunec would use."""
    out = subprocess.run(
        [os.path.join(args.bin, "tune"), "best", program, "--target",
         target(args), "--db", db, "--json"],
        stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(out.stdout)


def is_packed(record):
    return record["protocol"]["layout"] == "packed"


def build(args, program, db, library):
    subprocess.run(
        [os.path.join(args.bin, "tunec"), program, "--target", target(args),
         "--db", db, "--require-tuned", "-o", library], check=True,
        stderr=subprocess.DEVNULL)


# Of this machine's cores, as the processes of time_library have seen them.
_alone_contention = []


def time_libraries(args, entry, libraries, samples=25):
    """One new process in which the libraries, (path, is_packed), take turns;
    see time_library.cc. Its answer, with those of the libraries in order."""
    types = entry.spec.get("dtypes") or ["float32"] * len(entry.shapes)
    counts = []
    for shape in entry.shapes:
        count = 1
        for extent in shape:
            count *= extent
        counts.append(count)
    command = [os.path.join(args.bin, "..", "tests", "bin", "time_library"),
               "--symbol", entry.symbol, "--samples", str(samples),
               "--cores", str(args.cores)]
    for path, packed in libraries:
        command += ["--packed" if packed else "--library", path]
    if _alone_contention:
        command += ["--alone", str(min(_alone_contention))]
    out = subprocess.run(
        command + [f"{t}:{c}" for t, c in zip(types, counts)],
        stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(out.stdout)
    _alone_contention.append(answer["alone_contention"])
    return answer

#!/usr/bin/env python3
"""Tunes the suite and compares every entry with the best of its peers.

Each entry is tuned for --trials on --cores, compiled with tunec, and timed in
one process with the peers, interleaved, on the same buffers; weights are
declared constant, and all sides pack them once, ahead of time. Prints a table
and the geometric mean of best peer / ours: above one, ours is faster. Needs
libdnnl-dev; uses OpenBLAS if it is found, oneDNN 3 if suite_bench was built
with it, and the MKL of --mkl (fetch_peers.py fetches both).

  tests/perf/suite/run.py [--only gemm conv] [--trials 256] [--cores 1]
  tests/perf/suite/run.py --untuned          # the default schedules
  tests/perf/suite/run.py --peers-only       # the best of each library
"""

import argparse
import glob
import json
import math
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.dirname(HERE))
from farm import Farm  # noqa: E402
import low_precision  # noqa: E402
import programs  # noqa: E402


def bench(program, job, environment):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as spec:
        json.dump(job, spec)
        spec.flush()
        out = subprocess.run([program, spec.name], env=environment,
                             stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(out.stdout)


def mkl_library(folder):
    found = glob.glob(os.path.join(folder, "lib", "libmkl_rt.so*"))
    if not found:
        sys.exit(f"no lib/libmkl_rt.so in {folder}")
    return os.path.abspath(found[0])


def peak_of(entry, machine):
    """Of the instruction for the entry's operands, where there is one."""
    dtype = entry.spec.get("dtypes", ["float32"])[0]
    return machine["dot_peaks"].get(dtype, machine["peak_flops"])


def row(entry, measured, machine):
    peers = sorted(measured["peers"], key=lambda p: p["seconds"])
    best = peers[0]["seconds"] if peers else None
    plain = min((p["seconds"] for p in peers if p["plain"]), default=None)
    result = {"entry": entry.name, "seconds": measured.get("seconds"),
              "peers": {p["name"]: p["seconds"] for p in peers},
              "best_peer": peers[0]["name"] if peers else None,
              # Of the timings: something else used the core.
              "shared": measured["shared"],
              "largest_difference": measured.get("largest_difference"),
              "largest_value": measured.get("largest_value")}
    if result["seconds"]:
        seconds = result["seconds"]
        result["gflops"] = entry.flops / seconds / 1e9
        result["gbytes_per_second"] = entry.bytes / seconds / 1e9
        result["ratio"] = best / seconds if best else None
        # Like with like: ours has its weights laid out wherever it may.
        result["ratio_plain"] = (plain / seconds
                                 if plain and not entry.weights else None)
        result["share_of_peak"] = max(
            entry.flops / seconds / peak_of(entry, machine),
            entry.bytes / seconds / machine["copy_bandwidth"])
    return result


def means(results):
    ratios = [r["ratio"] for r in results if r.get("ratio")]
    return {
        "geometric_mean": math.exp(sum(map(math.log, ratios)) / len(ratios))
        if ratios else None,
        "worst": min(ratios, default=None)}


def show(result):
    def number(value, pattern):
        return pattern.format(value) if value is not None else "-"
    peer = result["best_peer"]
    print("{:24} {:>9} {:>8} {:>7} {:>6} {:>6} {:>6} {:>6}  {:>9} {}".format(
        result["entry"],
        number(result["seconds"] and result["seconds"] * 1e3, "{:.4f}"),
        number(result.get("gflops"), "{:.1f}"),
        number(result.get("gbytes_per_second"), "{:.1f}"),
        number(result.get("share_of_peak"), "{:.2f}"),
        number(result.get("ratio"), "{:.3f}"),
        number(result.get("ratio_plain"), "{:.3f}"),
        number(result.get("trials_per_second"), "{:.1f}"),
        number(peer and result["peers"][peer] * 1e3, "{:.4f}"), peer or ""),
        flush=True)


def show_peers(result):
    """The best of each library; the library is the name's first word."""
    best = {}
    for name, seconds in sorted(result["peers"].items(), key=lambda p: p[1]):
        best.setdefault(name.split()[0], f"{name} {seconds * 1e3:.4f}")
    print("{:28} {}".format(result["entry"], "; ".join(best.values())),
          flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--bench",
                        help="the suite_bench program (default: built beside)")
    parser.add_argument("--only", nargs="+", default=[],
                        help="entries of these names or name parts")
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--db", help="keep records here; reused")
    parser.add_argument("--no-tuning", action="store_true",
                        help="only what --db has")
    parser.add_argument("--keep", metavar="DIR",
                        help="only what the other scripts' --keep left here, "
                        "of --seed")
    parser.add_argument("--untuned", action="store_true")
    parser.add_argument("--peers-only", action="store_true",
                        help="time none of ours")
    parser.add_argument("--mkl", metavar="DIR",
                        help="compare with the MKL in DIR/lib, too")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    known = {**programs.ENTRIES, **low_precision.ENTRIES}
    entries = [e for e in known.values()
               if e.peers == "library"
               and programs.is_wanted(e.name, args.only, known)]
    entries += [e for e in programs.BESIDE.values() if e.name in args.only]
    program = args.bench or os.path.join(args.bin, "..", "tests", "bin",
                                         "suite_bench")
    if not os.path.exists(program):
        sys.exit(f"{program} is missing: install libdnnl-dev, then cmake "
                 "--preset release && cmake --build --preset release "
                 "--target suite_bench")
    target = f"host,cores={args.cores}"
    environment = dict(os.environ, OMP_NUM_THREADS=str(args.cores),
                       OPENBLAS_NUM_THREADS=str(args.cores),
                       MKL_NUM_THREADS=str(args.cores),
                       # The threads that oneDNN has, not a second pool.
                       MKL_THREADING_LAYER="GNU" if args.cores > 1
                       else "SEQUENTIAL",
                       OPENBLAS_THREAD_TIMEOUT="20")  # 2^20 cycles of spinning
    machine = bench(program, {"shapes": [[1], [1]], "spec": {"kind": ""},
                              "machine": True}, environment)
    machine["peak_flops"] *= args.cores
    machine["dot_peaks"] = {dtype: peak * args.cores for dtype, peak
                            in machine["dot_peaks"].items()}
    optional = {"mkl": mkl_library(args.mkl)} if args.mkl else {}
    results = []
    if not args.json:
        print("peak {:.0f} GFLOPS on {} core(s), copy {:.1f} GB/s".format(
            machine["peak_flops"] / 1e9, args.cores,
            machine["copy_bandwidth"] / 1e9))
    if not args.json and not args.peers_only:
        print("{:24} {:>9} {:>8} {:>7} {:>6} {:>6} {:>6} {:>6}  {:>9} {}"
              .format("entry", "ms", "GFLOPS", "GB/s", "peak", "ratio",
                      "plain", "tr/s", "peer ms", "best peer"))
    with tempfile.TemporaryDirectory() as folder:
        for entry in entries:
            job = {"shapes": entry.shapes, "spec": entry.spec,
                   "cores": args.cores, **optional}
            if args.peers_only:
                result = row(entry, bench(program, job, environment), machine)
                results.append(result)
                if not args.json:
                    show_peers(result)
                continue
            source = os.path.join(folder, entry.name + ".py")
            with open(source, "w") as file:
                file.write(entry.text)
            library = os.path.join(folder, entry.name + ".so")
            command = [os.path.join(args.bin, "tunec"), source, "--target",
                       target, "-o", library]
            rate = None
            if not args.untuned:
                db = args.db or os.path.join(folder, "suite.db")
                if args.keep:
                    db = os.path.join(args.keep,
                                      f"{entry.name}-{args.seed}.db")
                elif not args.no_tuning:
                    with Farm(args.bin, db=db) as farm:
                        start = time.monotonic()
                        last = farm.tune(
                            "run", source, "--target", target, "--trials",
                            str(args.trials), "--seed", str(args.seed))[-1]
                        rate = (last["trials_done"]
                                / (time.monotonic() - start))
                command += ["--db", db, "--require-tuned"]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            measured = bench(program, {
                **job, "library": library, "symbol": entry.symbol,
                "weights": entry.weights}, environment)
            result = row(entry, measured, machine)
            result["trials_per_second"] = rate
            results.append(result)
            if not args.json:
                show(result)
    summary = {
        "benchmark": "suite", "cores": args.cores, "trials": args.trials,
        "machine": machine, "entries": results,
        # Of float32 alone; the low-precision entries have their own.
        **means([r for r in results if r["entry"] in programs.ENTRIES]),
        "low_precision": means([r for r in results
                                if r["entry"] in low_precision.ENTRIES])}
    if args.json:
        print(json.dumps(summary))
        return 0
    for name, part in (("float32", summary),
                       ("low precision", summary["low_precision"])):
        if part["geometric_mean"]:
            print("{}: geometric mean of best peer / ours: {:.3f}, worst {:.3f}"
                  .format(name, part["geometric_mean"], part["worst"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

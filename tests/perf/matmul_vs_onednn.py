#!/usr/bin/env python3
"""Tunes a float32 matmul on one core and compares it with oneDNN's sgemm.

Both run on one thread, interleaved, on the same random buffers; prints the
ratio of the medians and the tuning speed. Needs libdnnl (Debian: libdnnl-dev).

  tests/perf/matmul_vs_onednn.py [--bin build/release/bin] [--trials 256]
"""

import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from farm import Farm, timed  # noqa: E402

N = 1024


def aligned(size):
    raw = ctypes.create_string_buffer(size * 4 + 64)
    offset = -ctypes.addressof(raw) % 64
    array = (ctypes.c_float * size).from_buffer(raw, offset)
    return array


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--program", default="examples/matmul_1024.py")
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--so", help="skip tuning: compare this library")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    result = {"benchmark": "matmul_vs_onednn", "n": N}
    path = args.so
    if path is None:
        with Farm(args.bin) as farm:
            lines, seconds = timed(lambda: farm.tune(
                "run", args.program, "--target", "host,cores=1", "--trials",
                str(args.trials), "--seed", str(args.seed)))
            last = lines[-1]
            path = os.path.abspath("mm_tuned.so")
            subprocess.run(
                [farm.program("tunec"), args.program, "--target",
                 "host,cores=1", "--db", farm.db, "--require-tuned", "-o",
                 path], check=True)
            result.update(trials=last["trials_done"], state=last["state"],
                          trials_per_second=last["trials_done"] / seconds,
                          recorded_ms=last["best_seconds"] * 1e3)

    library = ctypes.CDLL(path)
    symbol = "matmul"
    ours = getattr(library, symbol)
    ours.argtypes = [ctypes.c_void_p] * 3
    dnnl = ctypes.CDLL("libdnnl.so.2")
    dnnl.dnnl_sgemm.argtypes = [
        ctypes.c_char, ctypes.c_char, ctypes.c_int64, ctypes.c_int64,
        ctypes.c_int64, ctypes.c_float, ctypes.c_void_p, ctypes.c_int64,
        ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p,
        ctypes.c_int64]

    rng = random.Random(1)
    a, b, c, d = (aligned(N * N) for _ in range(4))
    for i in range(N * N):
        a[i] = rng.uniform(-1, 1)
        b[i] = rng.uniform(-1, 1)

    def run_ours():
        if ours(a, b, c) != 0:
            raise RuntimeError("the tuned library failed")

    def run_dnnl():
        dnnl.dnnl_sgemm(b"N", b"N", N, N, N, 1.0, ctypes.addressof(a), N,
                        ctypes.addressof(b), N, 0.0, ctypes.addressof(d), N)

    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    times = {"ours": [], "onednn": []}
    for round_ in range(args.rounds + 3):
        for name, run in (("ours", run_ours), ("onednn", run_dnnl)):
            start = time.perf_counter_ns()
            run()
            if round_ >= 3:
                times[name].append((time.perf_counter_ns() - start) / 1e9)
    worst = max(abs(x - y) for x, y in zip(c, d))
    gflops = {name: 2e-9 * N ** 3 / statistics.median(values)
              for name, values in times.items()}
    result.update(ours_gflops=gflops["ours"], onednn_gflops=gflops["onednn"],
                  ratio=gflops["ours"] / gflops["onednn"],
                  largest_difference=worst)
    if args.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key}: {value:.4g}" if isinstance(value, float)
                  else f"{key}: {value}")
    return 0 if worst < 1e-2 else 1


if __name__ == "__main__":
    sys.exit(main())

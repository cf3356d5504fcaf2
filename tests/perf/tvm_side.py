#!/usr/bin/env python3
"""The steps that need TVM in their process: tuning a program with MetaSchedule, and
timing two libraries together. Run by vs_tvm.py with the Python that has TVM.

  tvm_side.py tune JOB.json    {"program", "folder", "trials", "cpu", "cores"}
  tvm_side.py time JOB.json    {"ours", "symbol", "theirs", "shapes", "timer",
                                "rounds"}

Each prints one JSON object as its last line.
"""

import ctypes
import json
import os
import statistics
import sys
import time


def count_lines(path):
    if not os.path.exists(path):
        return 0
    with open(path) as file:
        return sum(1 for line in file if line.strip())


def tune(job):
    """Brings the folder's database to `trials` records; exports the best."""
    os.environ["TVM_NUM_THREADS"] = str(job["cores"])
    import tvm
    from tvm.s_tir import meta_schedule
    folder = job["folder"]
    os.makedirs(folder, exist_ok=True)
    module = tvm.script.from_source(job["program"])
    target = tvm.target.Target({"kind": "llvm", "mcpu": job["cpu"],
                                "num-cores": job["cores"]})
    records = os.path.join(folder, "database_tuning_record.json")
    done = count_lines(records)
    start = time.monotonic()
    if done < job["trials"]:
        database = meta_schedule.tune_tir(
            module, target, folder, max_trials_global=job["trials"] - done,
            num_trials_per_iter=min(64, job["trials"]), seed=job["seed"] + done)
    else:
        database = meta_schedule.database.JSONDatabase(work_dir=folder)
    seconds = time.monotonic() - start
    best = meta_schedule.tir_integration.compile_tir(database, module, target)
    library = os.path.join(folder, "best.so")
    tvm.compile(best.mod, target).export_library(library)
    with open(os.path.join(folder, "best.py"), "w") as file:
        file.write(best.mod.script())
    return {"records": count_lines(records), "added":
            count_lines(records) - done, "seconds": seconds,
            "library": library, "version": tvm.__version__}


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class Tensor(ctypes.Structure):
    """A DLTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device", Device),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Any(ctypes.Structure):
    """A TVMFFIAny that holds a DLTensor*."""
    _fields_ = [("type", ctypes.c_int32), ("padding", ctypes.c_int32),
                ("value", ctypes.c_void_p)]


CPU, FLOAT, TENSOR_POINTER = 1, 2, 7


def aligned(numpy, shape, fill):
    size = 1
    for extent in shape:
        size *= extent
    raw = numpy.empty(size * 4 + 64, dtype="uint8")
    start = -raw.ctypes.data % 64
    array = raw[start:start + size * 4].view("float32").reshape(shape)
    array[...] = fill
    return array


def compare(job):
    """Interleaved medians of both, and the largest difference of outputs."""
    os.environ["TVM_NUM_THREADS"] = str(job["cores"])
    import numpy
    import tvm
    timer = ctypes.CDLL(job["timer"])
    random = numpy.random.default_rng(1)
    shapes = job["shapes"]
    inputs = [aligned(numpy, s, random.uniform(-1, 1, s).astype("float32"))
              for s in shapes[:-1]]
    outputs = {side: aligned(numpy, shapes[-1], fill)
               for side, fill in (("ours", 0.25), ("theirs", 0.5))}
    keep = [tvm.runtime.load_module(job["theirs"])]

    def pointers(arrays):
        return (ctypes.c_void_p * len(arrays))(*[a.ctypes.data
                                                 for a in arrays])

    arrays = inputs + [outputs["theirs"]]
    tensors = (Tensor * len(arrays))()
    packed = (Any * len(arrays))()
    for i, array in enumerate(arrays):
        extents = (ctypes.c_int64 * array.ndim)(*array.shape)
        steps, step = [], 1
        for extent in reversed(array.shape):
            steps.insert(0, step)
            step *= extent
        strides = (ctypes.c_int64 * array.ndim)(*steps)
        keep += [extents, strides]
        tensors[i] = Tensor(array.ctypes.data, Device(CPU, 0), array.ndim,
                            FLOAT, 32, 1, extents, strides, 0)
        packed[i] = Any(TENSOR_POINTER, 0, ctypes.addressof(tensors[i]))
    ours = pointers(inputs + [outputs["ours"]])
    library = ctypes.CDLL(job["ours"])
    theirs = ctypes.CDLL(job["theirs"])
    symbol = getattr(library, job["symbol"])
    entry = theirs.__tvm_ffi_main
    timer.tilefarm_seconds_plain.restype = ctypes.c_double
    timer.tilefarm_seconds_packed.restype = ctypes.c_double
    count, repeats = ctypes.c_int(len(arrays)), ctypes.c_int64

    def run_ours(times):
        return timer.tilefarm_seconds_plain(symbol, ours, count,
                                            repeats(times))

    def run_theirs(times):
        return timer.tilefarm_seconds_packed(entry, packed, count,
                                             repeats(times))

    sides = {"ours": run_ours, "theirs": run_theirs}
    times = {side: [] for side in sides}
    often = {}
    for side, run in sides.items():
        if run(1) < 0:
            raise RuntimeError(f"{side}: the call failed")
        once = min(run(1) for _ in range(3))
        often[side] = max(1, min(5000, int(2e-3 / once)))
    for _ in range(job["rounds"]):
        for side, run in sides.items():
            run(1)      # brings its code and operands back
            times[side].append(run(often[side]))
    a = outputs["ours"].astype("float64")
    b = outputs["theirs"].astype("float64")
    return {"ours": statistics.median(times["ours"]),
            "theirs": statistics.median(times["theirs"]),
            "largest_difference": float(numpy.abs(a - b).max()),
            "rms": float(numpy.sqrt((b * b).mean())),
            "finite": bool(numpy.isfinite(a).all())}


def main():
    with open(sys.argv[2]) as file:
        job = json.load(file)
    result = {"tune": tune, "time": compare}[sys.argv[1]](job)
    sys.stdout.flush()
    print("\n" + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()

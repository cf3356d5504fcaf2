#!/usr/bin/env python3
"""Compares whole models with onnxruntime and OpenVINO, interleaved in one process.

Each model is compiled without records and, with --trials, tuned and compiled
again; all libraries and both peers then run the inputs of NAME.npz in turns, and
the medians are compared. "ratio" is the better peer over our best: above one,
ours is faster. "error" is the largest difference from the answer in NAME.npz
over the largest value of that output. "unfused" is what the tuning job measured,
outside of these turns, without fusion and records. Needs numpy, and onnxruntime
and openvino as far as they are to be compared; the models' weights are beside them.

  tests/perf/models.py DIR [--only NAME ...] [--cores 1] [--trials 1000]
"""

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from farm import Farm  # noqa: E402

# Of onnx.TensorProto.DataType.
DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64,
          9: np.bool_, 10: np.float16, 11: np.float64}


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64))]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("weights", ctypes.c_char_p),
                ("threads", ctypes.c_int32), ("spin_us", ctypes.c_int32)]


def tensors_of(library, record):
    """The inputs of a library made by tunec with --symbol model, from the record,
    and its outputs by name, zeros."""
    for function in ("model_input", "model_output"):
        getattr(library, function).restype = ctypes.POINTER(TensorInfo)
    inputs, outputs = [], {}
    for i in range(library.model_inputs()):
        info = library.model_input(i).contents
        inputs.append(np.ascontiguousarray(
            record["in_" + info.name.decode()], DTYPES[info.dtype]))
    for i in range(library.model_outputs()):
        info = library.model_output(i).contents
        outputs[info.name.decode()] = np.zeros(
            info.shape[:info.rank], DTYPES[info.dtype])
    return inputs, outputs


def error_of(outputs, record):
    """The largest difference from the record over the output's largest value;
    infinite where a value is none."""
    worst = 0.0
    for name, value in outputs.items():
        wanted = record.get("out_" + name)
        if wanted is None:
            wanted = record["outsample97_" + name]
            value = value.ravel()[::97]
        scale = float(np.abs(wanted).max()) or 1.0
        error = float(np.abs(value - wanted).max()) / scale
        worst = max(worst, error if math.isfinite(error) else math.inf)
    return worst


def pointers(arrays):
    return (ctypes.c_void_p * len(arrays))(
        *[array.ctypes.data for array in arrays])


class Artifact:
    """A library made by tunec with --symbol model."""

    def __init__(self, path, record, cores):
        library = ctypes.CDLL(path)
        self.model = ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), None, cores, 0)
        if library.model_create(ctypes.byref(options), ctypes.byref(self.model)):
            library.model_error.restype = ctypes.c_char_p
            sys.exit(library.model_error().decode())
        self.inputs, self.outputs = tensors_of(library, record)
        ins = pointers(self.inputs)
        outs = pointers(list(self.outputs.values()))
        self.run = lambda: library.model_run(self.model, ins, outs)

    def error(self, record):
        return error_of(self.outputs, record)


def onnxruntime_runner(path, record, cores):
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cores
    options.inter_op_num_threads = 1
    # Idle threads would take a core from whoever has the next turn.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"])
    inputs = {i.name: record["in_" + i.name] for i in session.get_inputs()}
    return lambda: session.run(None, inputs)


def openvino_runner(path, record, cores):
    try:
        import openvino
    except ImportError:
        return None
    compiled = openvino.Core().compile_model(path, "CPU", {
        "INFERENCE_NUM_THREADS": cores, "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    inputs = {i.any_name: record["in_" + i.any_name] for i in compiled.inputs}
    return lambda: request.infer(inputs)


def measure(spec):
    """In a process of its own: medians in seconds, interleaved."""
    record = dict(np.load(spec["record"]))
    artifacts = {name: Artifact(path, record, spec["cores"])
                 for name, path in spec["libraries"].items()}
    runners = {name: artifact.run for name, artifact in artifacts.items()}
    for name, make in (("onnxruntime", onnxruntime_runner),
                       ("openvino", openvino_runner)):
        try:
            runner = make(spec["model"], record, spec["cores"])
        except Exception as error:  # of many types, for models it can't read
            print(f"{name} cannot run this model: {str(error)[:200]}",
                  file=sys.stderr)
            continue
        if runner:
            runners[name] = runner
    times = {name: [] for name in runners}
    for run in runners.values():
        run()
    end = time.monotonic() + spec["seconds"]
    rounds = 0
    while rounds < 5 or time.monotonic() < end:
        for name, run in runners.items():
            # The first run finds the caches of another side.
            run()
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
        rounds += 1
    return {"seconds": {name: statistics.median(t) for name, t in times.items()},
            "errors": {name: artifact.error(record)
                       for name, artifact in artifacts.items()}}


def compile_model(arguments, model, output, *options):
    start = time.monotonic()
    built = subprocess.run(
        [os.path.join(arguments.bin, "tunec"), model, "--target",
         f"host,cores={arguments.cores}", "--symbol", "model", "-o", output,
         *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, check=False)
    if built.returncode != 0:
        sys.exit(built.stderr)
    return time.monotonic() - start


def tune(arguments, model, folder):
    """Returns the options with which tunec finds the records."""
    db = arguments.db or os.path.join(folder, "models.db")
    with Farm(arguments.bin, db=db) as farm:
        start = time.monotonic()
        last = farm.tune("run", model, "--target",
                         f"host,cores={arguments.cores}", "--trials",
                         str(arguments.trials))[-1]
        last["tuning_seconds"] = time.monotonic() - start
    return ["--db", db], last


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", help="folder with NAME.onnx and NAME.npz")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--only", nargs="+", default=[], help="names or parts")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--trials", type=int, default=0, help="of each model")
    parser.add_argument("--db", help="keep records here; reused")
    parser.add_argument("--library", action="append", default=[],
                        metavar="NAME=DIR",
                        help="also the libraries DIR/MODEL.so, as NAME")
    parser.add_argument("--keep", metavar="DIR", help="leave libraries here")
    parser.add_argument("--seconds", type=float, default=20, help="of timing")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(json.loads(arguments.measure))))
        return
    names = sorted(
        name[:-5] for name in os.listdir(arguments.models)
        if name.endswith(".onnx")
        and os.path.exists(os.path.join(arguments.models, name[:-5] + ".npz"))
        and (not arguments.only or any(o in name for o in arguments.only)))
    cores = sorted(os.sched_getaffinity(0))[:arguments.cores]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        keep = arguments.keep or folder
        os.makedirs(keep, exist_ok=True)
        for name in names:
            model = os.path.abspath(os.path.join(arguments.models, name + ".onnx"))
            result = {"model": name}
            libraries = {"untuned": os.path.join(keep, name + "-untuned.so")}
            result["compile_seconds"] = compile_model(
                arguments, model, libraries["untuned"])
            if arguments.trials or arguments.db:
                options = ["--db", arguments.db]
                if arguments.trials:
                    options, result["job"] = tune(arguments, model, folder)
                libraries["tuned"] = os.path.join(keep, name + "-tuned.so")
                result["tuned_compile_seconds"] = compile_model(
                    arguments, model, libraries["tuned"], *options)
            for other in arguments.library:
                label, path = other.split("=", 1)
                libraries[label] = os.path.join(os.path.abspath(path), name + ".so")
            out = subprocess.run(
                [sys.executable, os.path.abspath(__file__), arguments.models,
                 "--measure", json.dumps({
                     "model": model, "record": model[:-5] + ".npz",
                     "libraries": libraries, "cores": arguments.cores,
                     "seconds": arguments.seconds})],
                stdout=subprocess.PIPE, text=True, check=True,
                env=dict(os.environ, OMP_NUM_THREADS=str(arguments.cores)),
                preexec_fn=lambda: os.sched_setaffinity(0, cores))
            result.update(json.loads(out.stdout))
            seconds = result["seconds"]
            peers = [seconds[p] for p in ("onnxruntime", "openvino")
                     if p in seconds]
            ours = seconds.get("tuned", seconds["untuned"])
            result["ratio"] = min(peers) / ours if peers else None
            results.append(result)
            if not arguments.json:
                unfused = result.get("job", {}).get("unfused_seconds")
                print("{:16}".format(name),
                      f"unfused {unfused * 1e3:.2f}" if unfused else "",
                      " ".join(
                          f"{label} {value * 1e3:.2f}"
                          for label, value in seconds.items()),
                    "ratio {:.3f}".format(result["ratio"]) if peers else "",
                    "error {:.1e}".format(max(result["errors"].values())),
                    flush=True)
    ratios = [r["ratio"] for r in results if r["ratio"]]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    if arguments.json:
        print(json.dumps({"benchmark": "models", "cores": arguments.cores,
                          "trials": arguments.trials, "models": results,
                          "geometric_mean": mean}))
    elif ratios:
        print("geometric mean of best peer / ours, in ms above: {:.3f}, worst "
              "{:.3f}".format(mean, min(ratios)))


if __name__ == "__main__":
    main()

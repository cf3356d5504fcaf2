#!/usr/bin/env python3
"""Compares every distinct kernel of models with onnxruntime and OpenVINO.

A kernel of ours computes some tensors of the model from others. The part of the
model between them is a model of its own, which the peers run, on recorded inputs
where they are the model's own and random ones elsewhere. Our time is that of the
kernel within the whole model (tunec --profile, the least of each call's medians), so
its caches are as warm as the kernels before leave them. So are those of the peers: one
runs the whole model before each timed call, so that constants and memory for results
are where the model finds them, and then a twin of the part, with constants of its own,
on the same inputs. The time of an empty model, called in the same way, is taken off,
since within a model no call comes from outside. Peers
also bring their inputs into their own layouts and the results back, as they do at the
ends of a model. Ours is timed before all of theirs and after them.

"ratio" is the better peer over our tuned kernel: above one, ours is faster.
"default" is the share of the tuned speed that the default schedule reaches.
Kernels whose tensors the model does not name are listed without a ratio, and so are
those that a peer computes in less time than its calls of the empty model vary. Needs
numpy, onnx, and onnxruntime and openvino as far as they are to be compared.

  tests/perf/tasks.py DIR [--only NAME ...] [--trials 128] [--db FILE]

--trials are of each kernel on average; the tuner gives them where time is.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnx.shape_inference
import onnx.utils

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from farm import Farm  # noqa: E402
from models import onnxruntime_runner, openvino_runner  # noqa: E402

PROFILE_RUNS = 10



def inputs_of(record):
    return {name[3:]: record[name] for name in record if name.startswith("in_")}


def profile(arguments, model, record, folder, *options):
    """Per step: its kernel, the names of its tensors, seconds."""
    trace = os.path.join(folder, "trace.json")
    command = [os.path.join(arguments.bin, "tunec"), model, "--target",
               "host,cores=1", "--profile", "--profile-runs", str(PROFILE_RUNS),
               "--profile-trace", trace, *options]
    for name, value in inputs_of(record).items():
        path = os.path.join(folder, f"input{len(command)}.npy")
        np.save(path, value)
        command += ["--run", f"{name}={path}"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    steps = {}
    for event in events:
        step = steps.setdefault(event["args"]["step"], {
            "kernel": event["name"], "inputs": event["args"]["inputs"],
            "outputs": event["args"]["outputs"], "seconds": []})
        step["seconds"].append(event["dur"] * 1e-6)
    for step in steps.values():
        step["seconds"] = statistics.median(step["seconds"])
    return [steps[number] for number in sorted(steps)]


def kernels_of(steps):
    """Name: all steps of the kernel."""
    kernels = {}
    for step in steps:
        if step["kernel"] != "(copy)":
            kernels.setdefault(step["kernel"], []).append(step)
    return kernels


class Parts:
    """Parts of a model."""

    def __init__(self, path, record):
        model = onnx.shape_inference.infer_shapes(
            onnx.load(path, load_external_data=False))
        self.model = onnx.load(path)
        self.types = {}
        for value in (*model.graph.value_info, *model.graph.input,
                      *model.graph.output):
            tensor = value.type.tensor_type
            shape = [d.dim_value for d in tensor.shape.dim]
            if tensor.HasField("shape") and all(d > 0 for d in shape):
                self.types[value.name] = (tensor.elem_type, shape)
        self.producers = {name: node for node in self.model.graph.node
                          for name in node.output}
        self.constants = {c.name: c for c in self.model.graph.initializer}
        self.record = record

    def extract(self, inputs, outputs):
        """The model from the inputs to the outputs; None if there is none."""
        if not inputs or any(n not in self.types for n in (*inputs, *outputs)):
            return None
        nodes, constants, seen = [], [], set(inputs)
        wanted = list(outputs)
        while wanted:
            name = wanted.pop()
            if name in seen or not name:
                continue
            seen.add(name)
            if name in self.constants:
                constants.append(self.constants[name])
                continue
            node = self.producers.get(name)
            if node is None:
                return None
            if not any(node is other for other in nodes):
                nodes.append(node)
            wanted.extend(node.input)
        # As ordered in the model.
        wanted = {id(node) for node in nodes}
        nodes = [n for n in self.model.graph.node if id(n) in wanted]
        if not nodes or any(a.type in (onnx.AttributeProto.GRAPH,
                                       onnx.AttributeProto.GRAPHS)
                            for n in nodes for a in n.attribute):
            return None

        def info(name):
            return onnx.helper.make_tensor_value_info(name, *self.types[name])
        graph = onnx.helper.make_graph(
            nodes, "part", [info(n) for n in inputs],
            [info(n) for n in outputs], constants)
        return onnx.helper.make_model(
            graph, opset_imports=self.model.opset_import,
            functions=self.model.functions, ir_version=self.model.ir_version)

    def example_inputs(self, names):
        """Those of the record for the model's own, random ones elsewhere."""
        generator = np.random.default_rng(7)
        record = {}
        for name in names:
            if "in_" + name in self.record:
                record["in_" + name] = self.record["in_" + name]
                continue
            dtype, shape = self.types[name]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(dtype)
            if np.issubdtype(dtype, np.floating):
                value = generator.standard_normal(shape)
            else:  # indices of anything
                value = generator.integers(0, 2, shape)
            record["in_" + name] = value.astype(dtype)
        return record


def seconds_of(calls, budget):
    """For each (run, before) of the calls the median of its time, after those of
    before, and half of the range in which the middle half lies. They take turns for
    so many seconds each: the machine's speed changes."""
    for run, _ in calls:
        run()
    times, end = [], time.perf_counter() + budget * len(calls)
    while len(times) < 9 or time.perf_counter() < end:
        times.append([])
        for run, before in calls:
            for other in before:
                other()
            start = time.perf_counter()
            run()
            times[-1].append(time.perf_counter() - start)
    quartiles = [statistics.quantiles(column, n=4) for column in zip(*times)]
    return [(median, (high - low) / 2) for low, median, high in quartiles]


def empty_model(inputs, types, path):
    """Takes the same inputs and gives one element of the first."""
    nodes = [onnx.helper.make_node("Shape", [inputs[0]], ["shape"])]
    graph = onnx.helper.make_graph(
        nodes, "empty",
        [onnx.helper.make_tensor_value_info(n, *types[n]) for n in inputs],
        [onnx.helper.make_tensor_value_info(
            "shape", onnx.TensorProto.INT64, [len(types[inputs[0]][1])])])
    onnx.save(onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=8), path)


PEERS = (("onnxruntime", onnxruntime_runner), ("openvino", openvino_runner))


def peer_seconds(parts, kernel, models, folder, budget):
    """{peer: seconds}, or None if the kernel is no part of the model; a peer has
    None if its time is within the noise of a call."""
    for step in kernel:
        inputs = sorted(set(step["inputs"]))
        part = parts.extract(inputs, step["outputs"])
        if part is not None:
            break
    else:
        return None
    record = parts.example_inputs(inputs)
    path = os.path.join(folder, "part.onnx")
    onnx.save(part, path)
    # A file of its own, since constants may be read in mapped files.
    twin_path = os.path.join(folder, "twin.onnx")
    onnx.save(part, twin_path)
    empty = os.path.join(folder, "empty.onnx")
    empty_model(inputs, parts.types, empty)
    seconds = {}
    for name, make in PEERS:
        if models[name] is None:
            continue
        try:
            run, nothing = make(path, record, 1), make(empty, record, 1)
            # What a session keeps for itself is as cold in both.
            twins = make(twin_path, record, 1), make(empty, record, 1)
            (median, _), (overhead, noise) = seconds_of(
                [(run, [models[name], twins[0]]),
                 (nothing, [models[name], twins[1]])], budget)
            seconds[name] = median - overhead if median - overhead > noise else None
        except Exception as error:  # of many types, for what it cannot run
            print(f"{name} cannot run {kernel[0]['kernel']}: {str(error)[:200]}",
                  file=sys.stderr)
    return seconds or None


def peer_models(model, record):
    """{peer: its run of the whole model}, None where it cannot."""
    models = {}
    for name, make in PEERS:
        models[name] = None
        try:
            models[name] = make(model, record, 1)
        except Exception as error:  # of many types
            print(f"{name} cannot run {model}: {str(error)[:200]}", file=sys.stderr)
    return models


def measure(arguments, model, record, options, folder):
    """A list of results, one a kernel. The time of a kernel is the least over
    profiles before, between and after the peers' turns."""
    def least(steps):
        return {name: min(step["seconds"] for step in kernel)
                for name, kernel in kernels_of(steps).items()}
    tuned = profile(arguments, model, record, folder, *options)
    kernels = kernels_of(tuned)
    ours, default = least(tuned), least(profile(arguments, model, record, folder))
    parts, models = Parts(model, record), peer_models(model, record)
    peers = {name: peer_seconds(parts, kernel, models, folder, arguments.seconds)
             for name, kernel in kernels.items()}
    for name, value in least(profile(arguments, model, record, folder,
                                     *options)).items():
        ours[name] = min(ours[name], value)
    total = sum(ours[name] * len(kernel) for name, kernel in kernels.items())
    results = []
    for name, kernel in kernels.items():
        times = list((peers[name] or {}).values())
        best = min(times) if times and None not in times else None
        results.append({
            "kernel": name, "calls": len(kernel), "seconds": ours[name],
            "share": ours[name] * len(kernel) / total, "peers": peers[name],
            "outputs": kernel[0]["outputs"],
            "ratio": best / ours[name] if best else None,
            # The names end in numbers of kernels, which both compilations give.
            "default": ours[name] / default[name] if name in default else None})
    return results


def print_results(name, results):
    print(name)
    for r in sorted(results, key=lambda r: -r["share"]):
        peers = " ".join(f"{p} {s * 1e3:.4f}" if s else f"{p} (noise)"
                         for p, s in (r["peers"] or {}).items())
        print("  {:5.1%} {:2} x {:9.4f} ms  ratio {}  default {}  {}  {}".format(
            r["share"], r["calls"], r["seconds"] * 1e3,
            "{:5.2f}".format(r["ratio"]) if r["ratio"] else "    -",
            "{:4.2f}".format(r["default"]) if r["default"] else "   -",
            r["kernel"][:60], peers), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", help="folder with NAME.onnx and NAME.npz")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--only", nargs="+", default=[], help="names or parts")
    parser.add_argument("--trials", type=int, default=128, help="of each kernel")
    parser.add_argument("--db", help="keep records here; reused")
    parser.add_argument("--seconds", type=float, default=0.4,
                        help="of each peer and kernel")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.environ["OMP_NUM_THREADS"] = os.environ["TILEFARM_NUM_THREADS"] = "1"
    names = sorted(
        name[:-5] for name in os.listdir(arguments.models)
        if name.endswith(".onnx")
        and os.path.exists(os.path.join(arguments.models, name[:-5] + ".npz"))
        and (not arguments.only or any(o in name for o in arguments.only)))
    all_results = []
    with tempfile.TemporaryDirectory() as folder:
        db = arguments.db or os.path.join(folder, "tasks.db")
        for name in names:
            model = os.path.abspath(os.path.join(arguments.models, name + ".onnx"))
            record = dict(np.load(model[:-5] + ".npz"))
            os.sched_setaffinity(0, cores)
            if arguments.trials:
                count = len(kernels_of(profile(arguments, model, record, folder)))
                with Farm(arguments.bin, db=db) as farm:
                    farm.tune("run", model, "--target", "host,cores=1",
                              "--trials", str(count * arguments.trials))
            os.sched_setaffinity(0, cores[:1])
            results = measure(arguments, model, record, ["--db", db], folder)
            all_results += [{"model": name, **r} for r in results]
            if not arguments.json:
                print_results(name, results)
    ratios = [r["ratio"] for r in all_results if r["ratio"]]
    defaults = [r["default"] for r in all_results if r["default"]]
    summary = {
        "kernels": len(all_results), "compared": len(ratios),
        "geometric_mean": math.exp(sum(map(math.log, ratios)) / len(ratios))
        if ratios else None,
        "worst": min(ratios, default=None),
        "share_under_0.9": sum(r < 0.9 for r in ratios) / len(ratios)
        if ratios else None,
        "median_default": statistics.median(defaults) if defaults else None}
    if arguments.json:
        print(json.dumps({"benchmark": "tasks", "trials": arguments.trials,
                          "kernels": all_results, **summary}))
        return
    print(", ".join(f"{key.replace('_', ' ')} "
                    f"{value if not isinstance(value, float) else f'{value:.3f}'}"
                    for key, value in summary.items()))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the light_* models of the onnx package as models.py reads models.

They are nine classifiers whose weights are made by nodes of the model itself.
The recorded outputs are the package's; NAME.npz in OUT has them beside the
inputs for which they were computed. Needs numpy and onnx.

  tests/perf/light_models.py OUT
  tests/perf/models.py OUT --trials 300
"""

import argparse
import os
import shutil

import numpy as np
import onnx
from onnx import numpy_helper


def ramp(value_info):
    """What ONNX's test runner feeds: 0 up to, not including, 1."""
    shape = [d.dim_value or 1 for d in value_info.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count) / count).astype(np.float32).reshape(shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="folder for the models")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    source = os.path.join(os.path.dirname(onnx.__file__), "backend", "test",
                          "data", "light")
    for file in sorted(os.listdir(source)):
        if not file.endswith(".onnx"):
            continue
        path = os.path.join(source, file)
        graph = onnx.load(path).graph
        constants = {tensor.name for tensor in graph.initializer}
        arrays = {"in_" + value.name: ramp(value) for value in graph.input
                  if value.name not in constants}
        for i, value in enumerate(graph.output):
            arrays["out_" + value.name] = numpy_helper.to_array(
                onnx.load_tensor(f"{path[:-5]}_output_{i}.pb"))
        base = os.path.join(arguments.out, file[:-5])
        shutil.copyfile(path, base + ".onnx")
        np.savez(base + ".npz", **arrays)


if __name__ == "__main__":
    main()

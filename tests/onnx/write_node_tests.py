#!/usr/bin/env python3
"""Writes the node tests of the installed onnx package as onnx_backend_report reads them.

Its own command, onnx.backend.test.cmd_tools generate-data, writes them up to onnx 1.22
and leaves them out from 1.23 on. Needs numpy and onnx.

  tests/onnx/write_node_tests.py DIR      # DIR/NAME/model.onnx, DIR/NAME/test_data_set_0
"""

import argparse
import os
import warnings

import onnx
from onnx import numpy_helper
from onnx.backend.test.case import node


def message(value, info):
    """The value of an input or output as a protobuf message."""
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    if isinstance(value, onnx.TensorProto):
        return value
    return numpy_helper.from_array(value, info.name)


def write(path, content):
    with open(path, "wb") as file:
        file.write(content.SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="folder for the tests")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of divisions by zero that are meant
    cases = node.collect_testcases()
    for case in cases:
        folder = os.path.join(arguments.out, case.name)
        os.makedirs(folder, exist_ok=True)
        write(os.path.join(folder, "model.onnx"), case.model)
        graph = case.model.graph
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = os.path.join(folder, f"test_data_set_{i}")
            os.makedirs(data, exist_ok=True)
            for name, values, infos in (("input", inputs, graph.input),
                                        ("output", outputs, graph.output)):
                for j, (value, info) in enumerate(zip(values, infos)):
                    write(os.path.join(data, f"{name}_{j}.pb"), message(value, info))
    print(f"{len(cases)} tests of onnx {onnx.__version__}")


if __name__ == "__main__":
    main()

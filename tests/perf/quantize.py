#!/usr/bin/env python3
"""Quantises models to 8 bits with onnxruntime's quantizer, for models.py.

Writes NAME_FORM.onnx and NAME_FORM.npz (the inputs of NAME.npz, and what
onnxruntime answers to them) into OUT. Forms: qdq and qop (static: uint8
activations, int8 weights for each channel; calibrated with the inputs of
NAME.npz and permutations of them), dyn (dynamic). Needs onnx, onnxruntime,
sympy and numpy.

  tests/perf/quantize.py DIR OUT resnet50:qdq resnet50:qop bert_base_128:dyn
  tests/perf/models.py OUT --trials 1000
"""

import argparse
import os
import tempfile

import numpy as np
import onnxruntime
from onnxruntime import quantization
from onnxruntime.quantization import shape_inference


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, inputs):
        self.left = iter(inputs)

    def get_next(self):
        return next(self.left, None)


def inputs_of(record, count):
    """The recorded inputs, then ones whose floats are permuted."""
    generator = np.random.default_rng(1)
    first = {key[3:]: value for key, value in record.items()
             if key.startswith("in_")}
    sets = [first]
    for _ in range(count - 1):
        sets.append({
            name: generator.permutation(value.ravel()).reshape(value.shape)
            if value.dtype.kind == "f" else value
            for name, value in first.items()})
    return sets


def quantize(source, form, inputs, target):
    static = dict(activation_type=quantization.QuantType.QUInt8,
                  weight_type=quantization.QuantType.QInt8, per_channel=True)
    with tempfile.TemporaryDirectory() as folder:
        prepared = os.path.join(folder, "prepared.onnx")
        shape_inference.quant_pre_process(source, prepared)
        if form == "dyn":
            quantization.quantize_dynamic(
                prepared, target, per_channel=True,
                weight_type=quantization.QuantType.QInt8)
        else:
            quantization.quantize_static(
                prepared, target, Calibration(inputs),
                quant_format=quantization.QuantFormat.QDQ if form == "qdq"
                else quantization.QuantFormat.QOperator, **static)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", help="folder with NAME.onnx and NAME.npz")
    parser.add_argument("out", help="folder for the results")
    parser.add_argument("names", nargs="+", metavar="NAME:FORM")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    for item in arguments.names:
        name, form = item.split(":")
        if form not in ("qdq", "qop", "dyn"):
            parser.error(f"{item}: the forms are qdq, qop and dyn")
        base = os.path.join(arguments.models, name)
        inputs = inputs_of(dict(np.load(base + ".npz")), 4)
        target = os.path.join(arguments.out, f"{name}_{form}.onnx")
        quantize(base + ".onnx", form, inputs, target)
        session = onnxruntime.InferenceSession(
            target, providers=["CPUExecutionProvider"])
        outputs = session.run(None, inputs[0])
        np.savez(target[:-5] + ".npz",
                 **{"in_" + key: value for key, value in inputs[0].items()},
                 **{"out_" + output.name: value for output, value
                    in zip(session.get_outputs(), outputs)})
        print(target, flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Prints the label that a classification model gives an input.

  tunec model.onnx --target host -o model.so
  python3 classify.py model.so INPUT LABELS

INPUT has the elements of the model's only input, float32 in this machine's byte
order; LABELS has one label on each line. Needs the standard library alone; where
NumPy is installed, INPUT may also be a .npy file.
"""
import array
import ctypes
import math
import os
import sys

try:
    import numpy
except ImportError:
    numpy = None

FLOAT = 1  # ONNX's TensorProto.FLOAT


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64))]

    def elements(self):
        return math.prod(self.shape[i] for i in range(self.rank))


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("weights", ctypes.c_char_p),
                ("threads", ctypes.c_int32), ("spin_us", ctypes.c_int32)]


class Model:
    """A model with float32 tensors. Raises RuntimeError with the model's error."""

    def __init__(self, path, name="model", weights=None, threads=0, spin_us=0):
        # A path without a slash would be looked for among the system's libraries.
        self._library = ctypes.CDLL(os.path.abspath(path))
        self._name = name
        self._instance = ctypes.c_void_p()
        for function in ("input", "output"):
            self._get(function).restype = ctypes.POINTER(TensorInfo)
        self._get("error").restype = ctypes.c_char_p
        self._get("destroy").restype = None
        self.inputs = [self._get("input")(i).contents
                       for i in range(self._get("inputs")())]
        self.outputs = [self._get("output")(i).contents
                        for i in range(self._get("outputs")())]
        for tensor in self.inputs + self.outputs:
            if tensor.dtype != FLOAT:
                raise RuntimeError(
                    f"the tensor {tensor.name.decode()} is not float32")
        options = Options(ctypes.sizeof(Options),
                          os.fsencode(weights) if weights else None, threads,
                          spin_us)
        self._check(self._get("create")(ctypes.byref(options),
                                        ctypes.byref(self._instance)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._get("destroy")(self._instance)
        self._instance = ctypes.c_void_p()

    def run(self, *inputs):
        """Takes one buffer of floats for each input (array.array or a NumPy
        array) and returns an array.array("f") for each output."""
        if len(inputs) != len(self.inputs):
            raise RuntimeError(f"the model has {len(self.inputs)} inputs")
        kept = [self._buffer(info, data)
                for info, data in zip(self.inputs, inputs)]
        results = [array.array("f", bytes(4 * info.elements()))
                   for info in self.outputs]
        outputs = [self._buffer(info, data)
                   for info, data in zip(self.outputs, results)]
        pointers = ctypes.c_void_p * len(kept)
        targets = ctypes.c_void_p * len(outputs)
        self._check(self._get("run")(
            self._instance, pointers(*map(ctypes.addressof, kept)),
            targets(*map(ctypes.addressof, outputs))))
        return results

    def _get(self, function):
        return getattr(self._library, f"{self._name}_{function}")

    def _check(self, status):
        if status != 0:
            raise RuntimeError(self._get("error")().decode())

    @staticmethod
    def _buffer(info, data):
        view = memoryview(data).cast("B")
        if view.nbytes != 4 * info.elements():
            raise RuntimeError(
                f"the tensor {info.name.decode()} has {info.elements()} "
                f"elements, and {view.nbytes / 4:g} are given")
        return (ctypes.c_char * view.nbytes).from_buffer(view)


def read_input(path):
    if path.endswith(".npy"):
        if numpy is None:
            raise RuntimeError(f"{path}: .npy files need NumPy")
        return numpy.ascontiguousarray(numpy.load(path), dtype="float32")
    with open(path, "rb") as file:
        return bytearray(file.read())


def main(arguments):
    if len(arguments) != 4:
        print("usage: classify.py LIBRARY INPUT LABELS", file=sys.stderr)
        return 2
    _, library, input_path, labels_path = arguments
    try:
        with open(labels_path, encoding="utf-8") as file:
            labels = file.read().splitlines()
        with Model(library) as model:
            scores = model.run(read_input(input_path))[0]
        best = max(range(len(scores)), key=scores.__getitem__)
        if best >= len(labels):
            raise RuntimeError(
                f"{labels_path}: has fewer labels than the model")
        print(f"{labels[best]} {scores[best]:.3f}")
    except (AttributeError, OSError, RuntimeError) as error:
        print(f"classify: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

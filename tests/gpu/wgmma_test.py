"""wgmma_test.py TUNEC: matrix products by warpgroups and the copy engine.

In the simulator and as PTX, against sums in float64: all types and layouts, one and two
warpgroups, several products of each, sizes that no tile divides, persistent
blocks, results by the copy engine; with orders of threads and copies from
several seeds. Where ptxas is installed, kernels must not spill registers, and
ptxas must not serialise products.
"""

import array
import ctypes
import operator
import os
import random
import struct
import subprocess
import sys
import tempfile

import artifacts
import wgmma_traces

SEED = 11
# Sizes, the seed of the simulator (None: its own order), and settings.
CHECKED = [
    ((128, 128, 192), None, dict(columns=64, groups=1, stages=2)),
    ((128, 128, 192), 3, dict(columns=64, groups=1, stages=2, boxes=1)),
    ((128, 128, 192), 4, dict(columns=128, layout="nn", boxes=1)),
    ((64, 256, 128), 5, dict(rows=64, columns=256, groups=1, dtype="float16")),
    ((256, 128, 128), 6, dict(rows=256, columns=128, dtype="float16",
                              out="float32", layout="nn", boxes=1)),
    ((100, 136, 136), 7, dict(columns=64, stages=3)),
    ((100, 136, 136), 8, dict(columns=64, stages=3, boxes=1, layout="nn")),
    ((256, 256, 192), 9, dict(columns=64, blocks=4, stages=3)),
    ((200, 256, 136), 10, dict(columns=64, blocks=4, stages=3, boxes=1)),
    ((128, 128, 256), 11, dict(columns=64, groups=1, dtype="int8")),
]
ASSEMBLED = [
    dict(),
    dict(columns=128, groups=1),
    dict(rows=256, columns=128, boxes=1),
    dict(boxes=1, blocks=128, layout="nn"),
    dict(dtype="int8", boxes=1, blocks=128),
]


def encode(dtype, value):
    """The bytes of the number, and its value as the type has it."""
    if dtype == "int8":
        return struct.pack("b", value), value
    if dtype == "float16":
        data = struct.pack("<e", value)
        return data, struct.unpack("<e", data)[0]
    data = struct.pack("<f", value)
    if dtype == "bfloat16":
        data = data[2:]
        return data, struct.unpack("<f", b"\0\0" + data)[0]
    return data, struct.unpack("<f", data)[0]


def decode(dtype, data):
    if dtype == "bfloat16":
        words = array.array("H", data)
        return [struct.unpack("<f", struct.pack("<HH", 0, w))[0] for w in words]
    code = {"float16": "e", "float32": "f", "int32": "i"}[dtype]
    size = struct.calcsize(code)
    return list(struct.unpack(f"<{len(data) // size}{code}", data))


def matrix(dtype, rows, columns, rng):
    def draw():
        return rng.randint(-128, 127) if dtype == "int8" else rng.gauss(0, 1)
    elements = [encode(dtype, draw()) for _ in range(rows * columns)]
    values = [value for _, value in elements]
    return (b"".join(data for data, _ in elements),
            [values[r * columns:(r + 1) * columns] for r in range(rows)])


def check(tunec, number, size, seed, keys, rng):
    m, n, k = size
    name = f"product{number}"
    c = wgmma_traces.write(".", name, m, n, k, **keys)
    a_data, a = matrix(c["dtype"], m, k, rng)
    transposed = c["layout"] == "nt"
    b_data, b = matrix(c["dtype"], *((n, k) if transposed else (k, n)), rng)
    columns = b if transposed else list(zip(*b))
    out_bytes = {"int32": 4, "float32": 4}.get(c["out"], 2)
    if seed is None:
        os.environ.pop("TILEFARM_SIM_SEED", None)
    else:
        os.environ["TILEFARM_SIM_SEED"] = str(seed)
    for target in artifacts.KINDS:
        path = f"{name}_{target}.so"
        subprocess.run([tunec, name + ".py", "--target", target + ":sm_90a",
                        "--trace", name + ".tr", "-o", path], check=True)
        result = ctypes.create_string_buffer(m * n * out_bytes)
        failure = artifacts.call(path, a_data, b_data, result)
        if failure:
            raise AssertionError(f"{path} {keys}: {failure}")
        expected = [sum(map(operator.mul, row, column))
                    for row in a for column in columns]
        largest = max(map(abs, expected))
        error = artifacts.largest_error(expected, decode(c["out"], result.raw))
        bound = {"int32": 0, "float32": 4e-6, "float16": 6e-4,
                 "bfloat16": 5e-3}[c["out"]] * largest
        print(path, size, keys, "error", error, "of", largest, flush=True)
        if error > bound:
            raise AssertionError(f"{path} {keys}: an error of {error}, "
                                 f"seed {SEED}")


def assemble(tunec, ptxas, number, keys):
    name = f"large{number}"
    wgmma_traces.write(".", name, 4096, 4096, 4096, **keys)
    tune_opt = os.path.join(os.path.dirname(tunec), "tune-opt")
    ptx = subprocess.run([tune_opt, name + ".py", "--target", "cuda:sm_90a",
                          "--trace", name + ".tr", "--stage", "asm"],
                         check=True, capture_output=True, text=True).stdout
    if "wgmma.mma_async" not in ptx or "cp.async.bulk.tensor" not in ptx:
        raise AssertionError(f"{keys}: no products or no copies")
    if ptxas:
        artifacts.assemble(ptxas, ptx, "sm_90a", f"{name} {keys}")


def main():
    tunec = os.path.abspath(sys.argv[1])
    ptxas = artifacts.find_ptxas()
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, (size, seed, keys) in enumerate(CHECKED):
            check(tunec, number, size, seed, keys, rng)
        for number, keys in enumerate(ASSEMBLED):
            assemble(tunec, ptxas, number, keys)


if __name__ == "__main__":
    main()

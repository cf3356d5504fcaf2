"""row_quads_test.py TUNE_OPT TUNEC: attention whose scores stay in registers.

In the simulator and as PTX against attention in float64, and what the PTX has.
Where ptxas is installed, it must not spill registers.
"""

import ctypes
import math
import operator
import os
import random
import struct
import subprocess
import sys
import tempfile

import artifacts
import row_quads_kernels

SEED = 5
# Between them: masks; one chunk and several; one step of a product and several;
# both places of loops, and of queries.
CHECKED = [
    "n=64",
    "n=64 mask=tensor stages=2",
    "n=64 mask=causal terms=outside",
    "n=128 tall=4 c=32 stages=3 scores=inlined",
    "n=64 d=32 c=64 columns=split mask=causal",
    "n=64 warps=1 c=16 stages=2 terms=outside mask=tensor columns=split",
    "n=96 warps=3 c=48 stages=2",
    "n=64 dtype=bfloat16 queries=registers stages=2",
    "n=64 d=16 terms=outside warps=4 tall=2 c=64 scores=inlined",
    "n=64 queries=registers columns=split mask=causal",
    "n=64 dtype=float32 stages=2",
    "n=64 dtype=float32 d=32 tall=4 warps=1 mask=causal columns=split",
    "n=96 dtype=float32 warps=3 c=48 terms=outside mask=tensor scores=inlined",
]
# With the number of products, of loads and of barriers in the loop.
ASSEMBLED = [
    ("n=2048 warps=4 c=64 stages=2", 64, 36),
    ("n=2048 warps=4 c=64 stages=2 mask=tensor scores=inlined", 64, 36),
    ("n=2048 warps=4 c=32 stages=3 d=128", 64, 40),
    ("n=2048 warps=4 c=32 stages=2 tall=4", 64, 24),
]


def matrix(dtype, rows, columns, rng):
    """The bytes of the numbers, and their values as the type has them."""
    data, values = b"", []
    for _ in range(rows):
        row = [rng.gauss(0, 1) for _ in range(columns)]
        if dtype == "float32":
            part = struct.pack(f"<{columns}f", *row)
        elif dtype == "float16":
            part = struct.pack(f"<{columns}e", *row)
        else:
            part = b"".join(struct.pack("<f", x)[2:] for x in row)
        data += part
        values.append(decode(dtype, part))
    return data, values


def decode(dtype, data):
    count = len(data) // 2
    if dtype == "float32":
        return struct.unpack(f"<{count // 2}f", data)
    if dtype == "float16":
        return struct.unpack(f"<{count}e", data)
    return [struct.unpack("<f", b"\0\0" + data[2 * i:2 * i + 2])[0]
            for i in range(count)]


def attention(k, queries, keys, values, mask):
    scale = 1 / k.d ** 0.5
    columns = list(zip(*values))
    result = []
    for i, query in enumerate(queries):
        seen = i + 1 if k.mask == "causal" else k.n
        scores = [scale * sum(map(operator.mul, query, key))
                  for key in keys[:seen]]
        if mask:
            scores = list(map(operator.add, scores, mask[i]))
        highest = max(scores)
        weights = [math.exp(x - highest) for x in scores]
        total = sum(weights)
        result += [sum(map(operator.mul, weights, column)) / total
                   for column in columns]
    return result


def check(tunec, name, rng):
    k = row_quads_kernels.parse(name.split())
    with open("kernel.py", "w") as file:
        file.write(row_quads_kernels.program(k))
    tensors = [matrix(k.dtype, k.n, k.d, rng) for _ in range(3)]
    if k.mask == "tensor":
        tensors.append(matrix("float16", k.n, k.n, rng))
    expected = attention(k, *(values for _, values in tensors[:3]),
                         tensors[3][1] if k.mask == "tensor" else None)
    largest = max(map(abs, expected))
    # Probabilities and the result are such numbers; tf32 in two parts has 21
    # bits.
    bound = largest * {"float16": 2 ** -10, "bfloat16": 2 ** -7,
                       "float32": 2 ** -17}[k.dtype]
    for kind in artifacts.KINDS:
        path = f"{kind}_{name.replace(' ', '_')}.so"
        subprocess.run([tunec, "kernel.py", "--target", kind + ":sm_80",
                        "--as-is", "-o", path], check=True)
        out = ctypes.create_string_buffer(
            (4 if k.dtype == "float32" else 2) * k.n * k.d)
        failure = artifacts.call(path, *(data for data, _ in tensors), out)
        if failure:
            raise AssertionError(f"{path}: {failure}")
        error = artifacts.largest_error(expected, decode(k.dtype, out.raw))
        print(path, f"an error of {error} of {largest}", flush=True)
        if not error <= bound:
            raise AssertionError(f"{path}: an error of {error}, seed {SEED}")


def assemble(tune_opt, ptxas, name, products, loads):
    with open("kernel.py", "w") as file:
        file.write(row_quads_kernels.program(
            row_quads_kernels.parse(name.split())))
    for model in ("sm_80", "sm_90"):
        ptx = subprocess.run(
            [tune_opt, "kernel.py", "--target", "cuda:" + model, "--stage",
             "asm"], check=True, capture_output=True, text=True).stdout
        # One barrier is for the first copy, the other one in the loop.
        for text, count in (("mma.sync.aligned.m16n8k16", products),
                            ("ldmatrix.sync.aligned.m8n8.x", loads),
                            ("bar.sync", 2), (".local", 0)):
            if ptx.count(text) != count:
                raise AssertionError(
                    f"{name}, {model}: {ptx.count(text)} x {text}")
        for text, wanted in (("cp.async.cg.shared.global", True),
                             ("cvt.rn.f16x2.f32", True),
                             ("st.global.b16", False), ("st.shared.b16", False),
                             (".maxntid 32, 4, 1", True)):
            if (text in ptx) != wanted:
                raise AssertionError(f"{name}, {model}: {text}")
        if ptxas:
            artifacts.assemble(ptxas, ptx, model, name)


def main():
    tune_opt, tunec = (os.path.abspath(path) for path in sys.argv[1:3])
    ptxas = artifacts.find_ptxas()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rng = random.Random(SEED)
        for name in CHECKED:
            check(tunec, name, rng)
        for variant in ASSEMBLED:
            assemble(tune_opt, ptxas, *variant)
        os.chdir("/")


if __name__ == "__main__":
    main()

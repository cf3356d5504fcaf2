"""row_quads_test.py TUNE_OPT TUNEC: attention whose scores stay in registers.

In the simulator and as PTX against attention in float64, what the PTX has, and
which kernels are refused. Where ptxas is installed, it must not spill registers.
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


def beside(text, store, *lines):
    """The kernel with another block in the loops around that of a store."""
    before, after = text.split(store, 1)
    rest, after = after.split("\n", 1)
    indent = before[before.rindex("\n") + 1:][:-4]
    block = "".join(f"{indent}{line}\n" for line in lines)
    return f"{before}{store}{rest}\n{block}{after}"


ROW = "    vi = T.axis.spatial(32, b * 16 + y * 16 + t * 8 + x)"
SHARED_ROW = ('with T.block("G"):', ROW, "    G[vi] = M[vi]")
SHARED_SUM = ('with T.block("G"):', ROW, "    vj = T.axis.reduce(32, c * 32 + j)",
              "    with T.init():", "        G[vi] = T.float32(0)",
              "    G[vi] = G[vi] + S[vi, vj]")
SUM_ALLOCATED = ("    Qs = T.alloc",
                 '    G = T.alloc_buffer((32,), "float32", scope="local")\n'
                 "    Qs = T.alloc")
SUM_USED = ("O[vi, vd] / D[vi]", "O[vi, vd] / D[vi] + G[vi]")
SMALL = "n=32 d=16 warps=1"
# What is changed in a kernel, and the reason why it is refused.
REFUSED = [
    (SMALL, [('T.thread_binding(8, thread="threadIdx.x"',
              'T.thread_binding(16, thread="threadIdx.x"'),
             ("t * 8 + x)", "t * 8 + x % 8)"), ("x1 * 8", "x1 % 8 * 8")],
     "threadIdx.x has 16 iterations; 8 rows of quads are a warp"),
    (SMALL, [("(S[vi, vj] - M[vi])", "(S[vi, vj] - S[vi, 0])")],
     "reads another column than"),
    ("n=80 d=16 warps=1 c=20", [], "it has 20 columns, not a multiple of 8"),
    (SMALL, [("T.max(Mp[vi, vc],", "T.max(Mp[vi, vc] * T.float32(2),")],
     "not by a sum, product, minimum or maximum of that element alone"),
    ("n=48 d=16 warps=1 c=48 columns=split",
     [("for j0 in range(6)", "for j0 in range(16)"),
      ("for j1 in range(8)", "for j1 in range(3)"),
      ("j0 * 8 + j1", "j0 * 3 + j1")],
     "in another way than by digits of 2 and 4 columns"),
    (SMALL, [SUM_ALLOCATED, SUM_USED, SHARED_ROW],
     "it is over columns, and a store to G in it is not"),
    (SMALL, [SUM_ALLOCATED, SUM_USED, SHARED_SUM],
     "have to be around nothing else"),
    (SMALL, [(f"vd = T.axis.spatial(16, d)\n{' ' * 28}A[vi, vd] =",
              f"vd = T.axis.opaque(16, d)\n{' ' * 28}A[vi, vd // 2] =")],
     "lanes would write the same element in different iterations"),
    (SMALL + " dtype=float32 terms=outside",
     [('V: T.Buffer((32, 16), "float32")', 'V: T.Buffer((32, 16), "int8")'),
      ('Vs = T.alloc_buffer((32, 16), "float32"',
       'Vs = T.alloc_buffer((32, 16), "int8"'),
      ('P = T.alloc_buffer((32, 32), "float32"',
       'P = T.alloc_buffer((32, 32), "int8"'),
      ('Op = T.alloc_buffer((32, 1, 16), "float32"',
       'Op = T.alloc_buffer((32, 1, 16), "int32"'),
      ("P[vi, vj] = E[vi, vj]", 'P[vi, vj] = T.Cast("int8", E[vi, vj])'),
      ("Op[vi, vc, vd] = T.float32(0)", "Op[vi, vc, vd] = T.int32(0)"),
      ("+ P[vi, vc * 32 + vj] * Vs[vc * 32 + vj, vd]",
       '+ T.Cast("int32", P[vi, vc * 32 + vj]) * '
       'T.Cast("int32", Vs[vc * 32 + vj, vd])'),
      ("F[vi] + Op[vi, vc, vd]", 'F[vi] + T.Cast("float32", Op[vi, vc, vd])'),
      ("for j0 in range(4)", "for j0 in range(1)"),
      ('j1 in T.serial(8, annotations={"tilefarm.warp_matrix": "mma.3xtf32"})',
       'j1 in T.serial(32, annotations={"tilefarm.warp_matrix": "mma"})'),
      ("j0 * 8 + j1", "j0 * 32 + j1")],
     "an operand in registers has numbers of 16 or 32 bits, not int8"),
]


def refuse(tune_opt, name, changes, reason, target="cuda:sm_80"):
    text = row_quads_kernels.program(row_quads_kernels.parse(name.split()))
    for change in changes:
        if change in (SHARED_ROW, SHARED_SUM):
            text = beside(text, "P[vi, vj] = ", *change)
            continue
        if change[0] not in text:
            raise AssertionError(f"{name} has no {change[0]}")
        text = text.replace(*change)
    with open("kernel.py", "w") as file:
        file.write(text)
    done = subprocess.run([tune_opt, "kernel.py", "--target", target,
                           "--stage", "matrices"], capture_output=True,
                          text=True)
    if done.returncode != 1 or reason not in done.stderr:
        raise AssertionError(f"{name}, {changes}: {done.returncode}, "
                             f"{done.stderr[-500:]}; not {reason}")


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
        artifacts.check_ptx(
            ptx, f"{name}, {model}",
            counts=(("mma.sync.aligned.m16n8k16", products),
                    ("ldmatrix.sync.aligned.m8n8.x", loads), ("bar.sync", 2)),
            has=(("cp.async.cg.shared.global", True),
                 ("cvt.rn.f16x2.f32", True), (".local", False),
                 ("st.global.b16", False), ("st.shared.b16", False),
                 (".maxntid 32, 4, 1", True)))
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
        for variant in REFUSED:
            refuse(tune_opt, *variant)
        refuse(tune_opt, SMALL, [],
               "the target cannot exchange values within a warp", "opencl")
        for variant in ASSEMBLED:
            assemble(tune_opt, ptxas, *variant)
        os.chdir("/")


if __name__ == "__main__":
    main()

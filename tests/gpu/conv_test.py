"""conv_test.py TUNE_OPT TUNEC: convolutions and transpositions on GPUs.

Candidates of the design space in the simulator and as PTX, against sums in
float64; what the PTX has: tensor cores, asynchronous copies that fill with zeros, and
transpositions whose warps access whole cache lines.
"""

import array
import collections
import ctypes
import itertools
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

import artifacts

SEED = 11
DRAWS = 12
PTX_DRAWS = 4  # the first of them

Conv = collections.namedtuple(
    "Conv", "batch channels size filters kernel stride groups layout dtype fused")
# Between them: both layouts, strides, windows of one element, remainders of all
# dimensions, groups, a consumer to fuse.
CONVS = [
    Conv(2, 8, 10, 16, 3, 1, 1, "nchw", "float32", True),
    Conv(1, 3, 14, 16, 5, 2, 1, "nchw", "float32", False),
    Conv(2, 16, 6, 24, 1, 1, 1, "nchw", "float32", True),
    Conv(2, 8, 9, 16, 3, 2, 1, "nhwc", "float32", True),
    Conv(1, 16, 8, 16, 3, 1, 1, "nhwc", "float16", True),
    Conv(1, 8, 8, 16, 3, 1, 1, "nchw", "float16", False),
    Conv(1, 8, 8, 32, 3, 1, 2, "nchw", "float32", False),
]
TRANSPOSED = [
    ((64, 96), (1, 0), "float32"),
    ((50, 70), (1, 0), "float32"),
    ((2, 24, 7, 9), (0, 2, 3, 1), "float32"),
    ((64, 80), (1, 0), "int8"),
    ((33, 64), (1, 0), "float16"),
    ((3, 17, 40), (2, 1, 0), "float32"),
]


def grid(shape):
    return ", ".join(map(str, shape))


def shapes(c):
    out = (c.size + 2 * (c.kernel // 2) - c.kernel) // c.stride + 1
    own = c.channels // c.groups
    if c.layout == "nchw":
        return ((c.batch, c.channels, c.size, c.size),
                (c.filters, own, c.kernel, c.kernel),
                (c.batch, c.filters, out, out))
    return ((c.batch, c.size, c.size, c.channels),
            (c.filters, c.kernel, c.kernel, own),
            (c.batch, out, out, c.filters))


def program(c):
    x, w, y = shapes(c)
    pad = c.kernel // 2
    first = 2 if c.layout == "nchw" else 1  # of the dimensions of space
    padded = tuple(n + 2 * pad if first <= d < first + 2 else n
                   for d, n in enumerate(x))
    v = ["v0", "v1", "v2", "v3"]
    inside = " and ".join(f"{pad} <= {v[d]} and {v[d]} < {c.size + pad}"
                          for d in (first, first + 1))
    source = ", ".join(f"{v[d]} - {pad}" if first <= d < first + 2 else v[d]
                       for d in range(4))
    zero = f"T.{c.dtype}(0)"
    sums = "S" if c.fused else "Y"
    group = f"vf // {c.filters // c.groups} * {c.channels // c.groups} + vc"
    channel = "vc" if c.groups == 1 else group
    rows, columns = f"vh * {c.stride} + vi", f"vw * {c.stride} + vj"
    out, reduced = y, (w[1], c.kernel, c.kernel)
    if c.layout == "nchw":
        spatial, reduce = "n, f, h, w", "c, i, j"
        at, xs, ws = "vn, vf, vh, vw", f"vn, {channel}, {rows}, {columns}", "vf, vc, vi, vj"
    else:
        spatial, reduce = "n, h, w, f", "i, j, c"
        reduced = (c.kernel, c.kernel, w[3])
        at, xs, ws = "vn, vh, vw, vf", f"vn, {rows}, {columns}, {channel}", "vf, vi, vj, vc"

    def wide(e):
        return e if c.dtype == "float32" else f'T.Cast("float32", {e})'

    names = ", ".join("v" + name for name in (spatial + ", " + reduce).split(", "))
    lines = [
        "@T.prim_func",
        f'def main(X: T.Buffer(({grid(x)}), "{c.dtype}"), W: T.Buffer(({grid(w)}), "{c.dtype}"), '
        f'B: T.Buffer(({c.filters},), "float32"), Y: T.Buffer(({grid(y)}), "float32")):',
        f'    P = T.alloc_buffer(({grid(padded)}), "{c.dtype}")',
        f'    S = T.alloc_buffer(({grid(y)}), "float32")' if c.fused else "    # no consumer",
        f"    for a, b, c, d in T.grid({grid(padded)}):",
        '        with T.block("P"):',
        '            v0, v1, v2, v3 = T.axis.remap("SSSS", [a, b, c, d])',
        f"            P[v0, v1, v2, v3] = T.if_then_else({inside}, X[{source}], {zero})",
        f"    for {spatial}, {reduce} in T.grid({grid(out)}, {grid(reduced)}):",
        '        with T.block("conv"):',
        f'            {names} = T.axis.remap("SSSSRRR", [{spatial}, {reduce}])',
        "            with T.init():",
        f"                {sums}[{at}] = T.float32(0)",
        f"            {sums}[{at}] = {sums}[{at}] + {wide(f'P[{xs}]')} * {wide(f'W[{ws}]')}",
    ]
    if c.fused:
        lines += [
            f"    for a, b, c, d in T.grid({grid(y)}):",
            '        with T.block("Y"):',
            '            v0, v1, v2, v3 = T.axis.remap("SSSS", [a, b, c, d])',
            f"            Y[v0, v1, v2, v3] = T.max(S[v0, v1, v2, v3] + "
            f"B[{'v1' if c.layout == 'nchw' else 'v3'}], T.float32(0))",
        ]
    return "\n".join(lines) + "\n"


def count(shape):
    total = 1
    for n in shape:
        total *= n
    return total


def numbers(shape, dtype, rng):
    """The bytes of random numbers, and their values as the type has them."""
    form = {"float32": "f", "float16": "e", "int8": "b"}[dtype]
    draw = (lambda: rng.randint(-128, 127)) if dtype == "int8" else (lambda: rng.gauss(0, 1))
    data = struct.pack(f"<{count(shape)}{form}", *(draw() for _ in range(count(shape))))
    return data, struct.unpack(f"<{count(shape)}{form}", data)


def expected(c, x, w, b):
    xs, ws, y = shapes(c)
    last = c.layout == "nhwc"
    own, pad = c.channels // c.groups, c.kernel // 2

    def at(shape, index):
        i = 0
        for n, k in zip(shape, index):
            i = i * n + k
        return i

    result = []
    for index in itertools.product(*map(range, y)):
        n, h, v, f = index if last else (index[0], index[2], index[3], index[1])
        begin = f // (c.filters // c.groups) * own
        total = b[f] if c.fused else 0.0
        for i, j in itertools.product(range(c.kernel), range(c.kernel)):
            row, column = h * c.stride + i - pad, v * c.stride + j - pad
            if not (0 <= row < c.size and 0 <= column < c.size):
                continue
            for k in range(own):
                total += (x[at(xs, (n, row, column, begin + k) if last else
                               (n, begin + k, row, column))] *
                          w[at(ws, (f, i, j, k) if last else (f, k, i, j))])
        result.append(max(total, 0.0) if c.fused else total)
    return result


def traces(tune_opt):
    """The default schedule's trace, and those of candidates."""
    for seed in range(DRAWS):
        yield subprocess.run(
            [tune_opt, "program.py", "--target", "sim:sm_80", "--draw", str(seed),
             "--stage", "trace"], check=True, capture_output=True, text=True).stdout


def run(tunec, trace, seed, arguments):
    """Calls a candidate on each kind of target: pairs of it and of an empty text, or
    why it failed."""
    with open("program.tr", "w") as file:
        file.write(trace)
    for kind in artifacts.KINDS if seed < PTX_DRAWS else ("sim",):
        name = f"{kind}{seed}.so"
        subprocess.run([tunec, "program.py", "--target", kind + ":sm_80", "--trace",
                        "program.tr", "-o", name], check=True, stderr=subprocess.DEVNULL)
        yield kind, artifacts.call(name, *arguments)
        os.remove(name)


def check_conv(tune_opt, tunec, c, rng):
    with open("program.py", "w") as file:
        file.write(program(c))
    x_shape, w_shape, y_shape = shapes(c)
    x_data, x = numbers(x_shape, c.dtype, rng)
    w_data, w = numbers(w_shape, c.dtype, rng)
    b_data, b = numbers((c.filters,), "float32", rng)
    want = expected(c, x, w, b)
    largest = max(map(abs, want))
    tensor = flat = 0
    for seed, trace in enumerate(traces(tune_opt)):
        tensor += "tilefarm.warp_matrix" in trace
        flat += "transform_block_layout" in trace
        y = array.array("f", [float("nan")] * count(y_shape))
        for kind, failure in run(tunec, trace, seed, [
                x_data, w_data, b_data, ctypes.c_void_p(y.buffer_info()[0])]):
            error = artifacts.largest_error(want, y)
            if failure or error > 3e-6 * largest:
                raise AssertionError(
                    f"{c}, {kind}, seed {SEED}, candidate {seed}: {failure or error}\n{trace}")
            y[:] = array.array("f", [float("nan")] * len(y))
    print(c, "on tensor cores:", tensor, "as a product:", flat, "of", DRAWS, flush=True)
    # Of groups, each filter has operands of its own: no product of matrices.
    if (tensor > 0) != (c.groups == 1) or flat < tensor:
        raise AssertionError(f"{c}: wrong number of candidates on tensor cores")


def transposition(shape, order, dtype):
    out = tuple(shape[p] for p in order)
    loops = [f"a{i}" for i in range(len(shape))]
    v = [f"v{i}" for i in range(len(shape))]
    source = [v[order.index(d)] for d in range(len(shape))]
    return out, "\n".join([
        "@T.prim_func",
        f'def main(A: T.Buffer(({grid(shape)}), "{dtype}"), B: T.Buffer(({grid(out)}), "{dtype}")):',
        f"    for {', '.join(loops)} in T.grid({grid(out)}):",
        '        with T.block("B"):',
        f'            {", ".join(v)} = T.axis.remap("{"S" * len(v)}", [{", ".join(loops)}])',
        f"            B[{', '.join(v)}] = A[{', '.join(source)}]",
    ]) + "\n"


def check_transposition(tune_opt, tunec, shape, order, dtype, rng):
    out, text = transposition(shape, order, dtype)
    with open("program.py", "w") as file:
        file.write(text)
    data, _ = numbers(shape, dtype, rng)
    size = len(data) // count(shape)
    strides = [count(shape[d + 1:]) for d in range(len(shape))]
    want = b"".join(
        data[at * size:(at + 1) * size]
        for index in itertools.product(*map(range, out))
        for at in [sum(k * strides[order[d]] for d, k in enumerate(index))])
    staged = 0
    for seed, trace in enumerate(traces(tune_opt)):
        staged += '"shared"' in trace
        y = (ctypes.c_char * len(data))()
        for kind, failure in run(tunec, trace, seed, [data, y]):
            if failure or y.raw != want:
                raise AssertionError(
                    f"{shape} {order} {dtype}, {kind}, candidate {seed}: {failure}\n{trace}")
            ctypes.memset(y, 0xff, len(data))
    print(shape, order, dtype, "through shared memory:", staged, "of", DRAWS, flush=True)
    # Rows of fewer than 8 elements are not worth it.
    if (staged > 0) != (min(out[-1], shape[-1]) >= 8):
        raise AssertionError(f"{shape} {order} {dtype}")


def ptx_of(tune_opt, text, model="sm_90a"):
    with open("program.py", "w") as file:
        file.write(text)
    return subprocess.run(
        [tune_opt, "program.py", "--target", "cuda:" + model, "--default", "--stage", "asm"],
        check=True, capture_output=True, text=True).stdout


def check_ptx(tune_opt, ptxas):
    # Vectors of channels, of which those beyond the image are zeros (on sm_90a:
    # wgmma_conv_test).
    c = Conv(16, 64, 56, 64, 3, 1, 1, "nhwc", "float16", True)
    ptx = ptx_of(tune_opt, program(c), "sm_80")
    for text in ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                 r"cp.async.cg.shared.global \[%r\d+\], \[%rd\d+\], 16, %r\d+;",
                 r"cp.async.cg.shared.global \[%r\d+\], \[%rd\d+\], 16;"):
        if not re.search(text, ptx):
            raise AssertionError(f"{c}: no {text}")
    # Single elements of a window, and vectors of filters.
    c = Conv(16, 64, 56, 64, 3, 1, 1, "nchw", "float32", True)
    convolved = ptx_of(tune_opt, program(c))
    for text in (r"cp.async.ca.shared.global \[%r\d+\], \[%rd\d+\], 4, %r\d+;", "fma.rn.f32"):
        if not re.search(text, convolved):
            raise AssertionError(f"{c}: no {text}")
    transposed = ptx_of(tune_opt, transposition((4096, 4096), (1, 0), "float32")[1])
    for text in (r"ld.global.nc.v4", r"st.global.v4"):
        if text not in transposed:
            raise AssertionError(f"transposition: no {text}")
    for name, text, model in (("half", ptx, "sm_80"), ("float", convolved, "sm_90a"),
                              ("transposed", transposed, "sm_90a")):
        if ptxas:
            artifacts.assemble(ptxas, text, model, name)


def main():
    tune_opt, tunec = (os.path.abspath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rng = random.Random(SEED)
        for c in CONVS:
            check_conv(tune_opt, tunec, c, rng)
        for shape, order, dtype in TRANSPOSED:
            check_transposition(tune_opt, tunec, shape, order, dtype, rng)
        check_ptx(tune_opt, artifacts.find_ptxas())


if __name__ == "__main__":
    main()

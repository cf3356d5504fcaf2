"""cluster_test.py TUNE_OPT TUNEC: sums whose parts the blocks of a cluster compute.

Default schedules and candidates that have clusters, of products and convolutions, in
the simulator and as PTX, against sums in float64.
"""

import array
import collections
import ctypes
import os
import random
import subprocess
import sys
import tempfile

import artifacts
import conv_test

SEED = 17
DRAWS = 24
RUNS = 2  # candidates that have clusters, of each program

Product = collections.namedtuple("Product", "rows columns terms dtype batch")
# Remainders of all sizes, of parts too; matrix units of warpgroups; batches.
PRODUCTS = [
    Product(48, 40, 512, "float32", 1),
    Product(33, 24, 777, "float32", 1),
    Product(9, 64, 320, "float32", 2),
    Product(64, 64, 1024, "float16", 1),
    Product(70, 72, 512, "float16", 1),
]
CONVS = [
    conv_test.Conv(1, 64, 7, 16, 3, 1, 1, "nhwc", "float32", True),
    conv_test.Conv(1, 40, 6, 24, 3, 2, 1, "nchw", "float32", False),
    conv_test.Conv(1, 64, 8, 64, 3, 1, 1, "nhwc", "float16", True),
]


def program(p):
    def wide(e):
        return e if p.dtype == "float32" else f'T.Cast("float32", {e})'

    return f"""
@T.prim_func
def main(A: T.Buffer(({p.batch}, {p.rows}, {p.terms}), "{p.dtype}"),
         W: T.Buffer(({p.batch}, {p.terms}, {p.columns}), "{p.dtype}"),
         B: T.Buffer(({p.columns},), "float32"),
         D: T.Buffer(({p.batch}, {p.rows}, {p.columns}), "float32")):
    C = T.alloc_buffer(({p.batch}, {p.rows}, {p.columns}), "float32")
    for b, i, j, k in T.grid({p.batch}, {p.rows}, {p.columns}, {p.terms}):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = T.float32(0)
            C[vb, vi, vj] = C[vb, vi, vj] + {wide("A[vb, vi, vk]")} * {wide("W[vb, vk, vj]")}
    for b, i, j in T.grid({p.batch}, {p.rows}, {p.columns}):
        with T.block("D"):
            vb, vi, vj = T.axis.remap("SSS", [b, i, j])
            D[vb, vi, vj] = T.max(C[vb, vi, vj] + B[vj], T.float32(0))
"""


def expected(p, a, w, b):
    result = []
    for batch in range(p.batch):
        columns = [w[batch * p.terms * p.columns + j:(batch + 1) * p.terms * p.columns:p.columns]
                   for j in range(p.columns)]
        for i in range(batch * p.rows, (batch + 1) * p.rows):
            row = a[i * p.terms:(i + 1) * p.terms]
            result += [max(sum(x * y for x, y in zip(row, columns[j])) + b[j], 0.0)
                       for j in range(p.columns)]
    return result


def trace_of(tune_opt, *how):
    made = subprocess.run([tune_opt, "program.py", "--target", "sim:sm_90a", *how,
                           "--stage", "trace"], capture_output=True, text=True)
    return made.stdout if made.returncode == 0 else ""


def traces(tune_opt):
    """The default schedule, and candidates that have clusters."""
    yield trace_of(tune_opt, "--default")
    found = 0
    for seed in range(DRAWS):
        trace = trace_of(tune_opt, "--draw", str(seed))
        if found < RUNS and "clusterCtaIdx.x" in trace:
            found += 1
            yield trace


def check(tune_opt, tunec, what, text, inputs, want):
    with open("program.py", "w") as file:
        file.write(text)
    y = array.array("f", bytes(4 * len(want)))
    largest = max(map(abs, want))
    tried = warpgroups = 0
    for trace in traces(tune_opt):
        if "clusterCtaIdx.x" not in trace:
            raise AssertionError(f"{what}: the default schedule has no clusters\n{trace}")
        warpgroups += "tilefarm.warpgroup_stages" in trace
        with open("program.tr", "w") as file:
            file.write(trace)
        for kind in artifacts.KINDS:
            name = f"{kind}{tried}.so"
            subprocess.run([tunec, "program.py", "--target", kind + ":sm_90a", "--trace",
                            "program.tr", "-o", name], check=True, stderr=subprocess.DEVNULL)
            y[:] = array.array("f", [float("nan")] * len(want))
            failure = artifacts.call(name, *inputs, ctypes.c_void_p(y.buffer_info()[0]))
            os.remove(name)
            error = artifacts.largest_error(want, y)
            if failure or error > 3e-6 * largest:
                raise AssertionError(f"{what}, {kind}: {failure or error}\n{trace}")
        tried += 1
    print(what, "schedules:", tried, "by warpgroups:", warpgroups, flush=True)
    if tried < 2:
        raise AssertionError(f"{what}: no candidate has clusters")
    return warpgroups


def main():
    tune_opt, tunec = (os.path.abspath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rng = random.Random(SEED)
        warpgroups = 0
        for p in PRODUCTS:
            a_data, a = conv_test.numbers((p.batch, p.rows, p.terms), p.dtype, rng)
            w_data, w = conv_test.numbers((p.batch, p.terms, p.columns), p.dtype, rng)
            b_data, b = conv_test.numbers((p.columns,), "float32", rng)
            warpgroups += check(tune_opt, tunec, p, program(p), [a_data, w_data, b_data],
                                expected(p, a, w, b))
        for c in CONVS:
            x_shape, w_shape, _ = conv_test.shapes(c)
            x_data, x = conv_test.numbers(x_shape, c.dtype, rng)
            w_data, w = conv_test.numbers(w_shape, c.dtype, rng)
            b_data, b = conv_test.numbers((c.filters,), "float32", rng)
            warpgroups += check(tune_opt, tunec, c, conv_test.program(c),
                                [x_data, w_data, b_data], conv_test.expected(c, x, w, b))
        if warpgroups == 0:
            raise AssertionError("no products of warpgroups")


if __name__ == "__main__":
    main()

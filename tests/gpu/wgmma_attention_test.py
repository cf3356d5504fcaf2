"""wgmma_attention_test.py TUNE_OPT TUNEC: attention that warpgroups compute.

The default schedule and candidates for sm_90a, in the simulator and as PTX, against
attention in float64: several heads or none, numbers of keys and queries and lengths of
vectors that differ, masks that hide whole rows or chunks, an elementwise block behind it,
blocks that take heads out of rows and put them back.
Where ptxas is installed, large kernels must not spill.
"""

import collections
import ctypes
import math
import operator
import os
import random
import subprocess
import sys
import tempfile

import artifacts
import wgmma_conv_test as numbers_of

SEED = 21
DRAWS = 2
MOST_SEEDS = 400
TARGET = "sm_90a"
LOWEST = -3.4028234663852886e+38

# heads 0: the tensors have no such dimension. scale: of the differences from a row's
# largest score. mask: is added to the scores, where they are read, or with "block" by one of
# its own. rounds: to the type of the operands. moved: the parameters have heads in each row.
Attention = collections.namedtuple(
    "Attention", "heads queries keys depth columns dtype scale mask rounds moved",
    defaults=["float16", None, False, False, False])
ATTENTIONS = [
    Attention(0, 64, 128, 64, 64),
    Attention(2, 128, 192, 64, 64, "bfloat16", 0.125, False, True),
    Attention(0, 192, 96, 128, 64, "float16", 0.25, True),
    Attention(3, 64, 128, 64, 192, "float16", None, True, True),
    Attention(0, 128, 256, 128, 128, "bfloat16", 0.088),
    Attention(2, 128, 96, 64, 128, "float16", 0.125, False, True, True),
    # Rows and terms are padded; with a mask that has none for them.
    Attention(2, 60, 117, 64, 64, "float16", 0.125, True),
    Attention(2, 120, 77, 64, 64, "bfloat16", 0.125, False, True, True),
]
LARGE = [
    Attention(32, 2048, 2048, 64, 64, "float16", 0.125, False, True),
    Attention(96, 512, 512, 64, 64, "bfloat16", 0.125, True, True),
    Attention(16, 4096, 4096, 128, 128, "float16", 0.088, False, True),
    Attention(12, 1024, 1024, 64, 64, "float16", 0.125, False, True, True),
]


def shapes(c):
    """Of Q, K, V, the mask and the result."""
    def of(rows, numbers):
        heads = [c.heads] if c.heads else []
        return [rows, *heads, numbers] if c.moved else [*heads, rows, numbers]

    return (of(c.queries, c.depth), of(c.keys, c.depth), of(c.keys, c.columns),
            [c.queries, c.keys], of(c.queries, c.columns))


def moved(values, rows, columns):
    """Dimensions of rows, columns and others: columns first."""
    width = len(values) // (rows * columns)
    return [values[(r * columns + c) * width + i]
            for c in range(columns) for r in range(rows) for i in range(width)]


def block(name, extents, kinds, body, init=None):
    """A nest of one block, with the variables v0, v1, .."""
    loops = [f"i{k}" for k in range(len(extents))]
    names = [f"v{k}" for k in range(len(extents))]
    lines = [f"    for {', '.join(loops)} in T.grid({', '.join(map(str, extents))}):",
             f'        with T.block("{name}"):',
             f'            {", ".join(names)} = T.axis.remap("{kinds}", [{", ".join(loops)}])']
    if init:
        lines += ["            with T.init():", f"                {init}"]
    return lines + [f"            {body}"]


def program(c):
    q, k, v, mask, o = ("(" + ", ".join(map(str, s)) + ")" for s in shapes(c))
    heads = [c.heads] if c.heads else []
    h = "v0, " if c.heads else ""
    a, b, d = (f"v{len(heads) + i}" for i in range(3))
    some = "S" * len(heads)
    scores = ", ".join(map(str, heads + [c.queries, c.keys]))
    rows = ", ".join(map(str, heads + [c.queries])) + ","
    results = ", ".join(map(str, heads + [c.queries, c.columns]))
    masked = f"S[{h}{a}, {b}] + A[{a}, {b}]"
    score = (f"B[{h}{a}, {b}]" if c.mask == "block" else
             masked if c.mask else f"S[{h}{a}, {b}]")
    power = f"{score} - M[{h}{a}]"
    if c.scale:
        power = f"({power}) * T.float32({c.scale})"
    result = "R" if c.rounds else "OH" if c.moved else "O"
    own = "H" if c.moved else ""
    out = c.dtype if c.rounds else "float32"
    lines = [
        "@T.prim_func",
        f'def main(Q: T.Buffer({q}, "{c.dtype}"), K: T.Buffer({k}, "{c.dtype}"), '
        f'V: T.Buffer({v}, "{c.dtype}"), A: T.Buffer({mask}, "float32"), '
        f'O: T.Buffer({o}, "{out}")):',
        f'    S = T.alloc_buffer(({scores}), "float32")',
        f'    M = T.alloc_buffer(({rows}), "float32")',
        f'    E = T.alloc_buffer(({scores}), "float32")',
        f'    D = T.alloc_buffer(({rows}), "float32")',
        f'    P = T.alloc_buffer(({scores}), "{c.dtype}")']
    if c.mask == "block":
        lines.append(f'    B = T.alloc_buffer(({scores}), "float32")')
    if c.rounds:
        lines.append(f'    R = T.alloc_buffer(({results}), "float32")')
    if c.moved:
        operands = {"Q": (c.queries, c.depth), "K": (c.keys, c.depth), "V": (c.keys, c.columns)}
        lines += [f'    {name}H = T.alloc_buffer(({c.heads}, {n}, {width}), "{c.dtype}")'
                  for name, (n, width) in operands.items()]
        lines.append(f'    OH = T.alloc_buffer(({results}), "{out}")')
        for name, (n, width) in operands.items():
            lines += block(f"{name}H", [c.heads, n, width], "SSS",
                           f"{name}H[v0, v1, v2] = {name}[v1, v0, v2]")

    def product(name, to, extents, x, y):
        return block(name, heads + extents, some + "SSR",
                     f'{to}[{h}{a}, {b}] = {to}[{h}{a}, {b}] + T.Cast("float32", {x}) * '
                     f'T.Cast("float32", {y})', f"{to}[{h}{a}, {b}] = T.float32(0)")

    each = heads + [c.queries, c.keys]
    lines += product("S", "S", [c.queries, c.keys, c.depth], f"Q{own}[{h}{a}, {d}]",
                     f"K{own}[{h}{b}, {d}]")
    if c.mask == "block":
        lines += block("B", each, some + "SS", f"B[{h}{a}, {b}] = {masked}")
    lines += block("M", each, some + "SR", f"M[{h}{a}] = T.max(M[{h}{a}], {score})",
                   f"M[{h}{a}] = T.float32({LOWEST})")
    lines += block("E", each, some + "SS", f"E[{h}{a}, {b}] = T.exp({power})")
    lines += block("D", each, some + "SR", f"D[{h}{a}] = D[{h}{a}] + E[{h}{a}, {b}]",
                   f"D[{h}{a}] = T.float32(0)")
    lines += block("P", each, some + "SS",
                   f'P[{h}{a}, {b}] = T.Cast("{c.dtype}", E[{h}{a}, {b}] / D[{h}{a}])')
    lines += product("O", result, [c.queries, c.columns, c.keys], f"P[{h}{a}, {d}]",
                     f"V{own}[{h}{d}, {b}]")
    if c.rounds:
        lines += block("round", heads + [c.queries, c.columns], some + "SS",
                       f'O{own}[{h}{a}, {b}] = T.Cast("{c.dtype}", R[{h}{a}, {b}])')
    if c.moved:
        lines += block("back", [c.queries, c.heads, c.columns], "SSS",
                       "O[v0, v1, v2] = OH[v1, v0, v2]")
    return "\n".join(lines) + "\n"


def hidden(c):
    """Row 1 as a whole, which then weighs all keys alike; of the others the first half of
    the keys, or every third one."""
    return [LOWEST if row == 1 or (key < c.keys // 2 if row % 2 else key % 3 == 0) else
            (row + key) % 5 * 0.25 for row in range(c.queries) for key in range(c.keys)]


def expected(c, q, k, v, mask):
    if c.moved:
        q, k, v = (moved(x, rows, c.heads)
                   for x, rows in ((q, c.queries), (k, c.keys), (v, c.keys)))
    result = []
    for head in range(max(c.heads, 1)):
        def rows(values, count, width):
            first = head * count * width
            return [values[first + i * width:first + (i + 1) * width] for i in range(count)]

        keys = rows(k, c.keys, c.depth)
        values = list(zip(*rows(v, c.keys, c.columns)))
        for i, query in enumerate(rows(q, c.queries, c.depth)):
            scores = [sum(map(operator.mul, query, key)) for key in keys]
            if c.mask:
                hides = mask[i * c.keys:(i + 1) * c.keys]
                # As float32 adds: nothing is left of the score.
                scores = [m if m == LOWEST else s + m for s, m in zip(scores, hides)]
            largest = max(scores)
            shares = [math.exp((s - largest) * (c.scale or 1)) for s in scores]
            total = sum(shares)
            result += [sum(map(operator.mul, shares, column)) / total for column in values]
    return moved(result, c.heads, c.queries) if c.moved else result


def trace_of(tune_opt, seed):
    """Of the default schedule (0) or a candidate."""
    how = ["--draw", str(seed)] if seed else ["--default", "--allow-rounding"]
    return subprocess.run(
        [tune_opt, "program.py", "--target", "sim:" + TARGET, *how, "--stage", "trace"],
        check=True, capture_output=True, text=True).stdout


def check(tune_opt, tunec, c, rng):
    with open("program.py", "w") as file:
        file.write(program(c))
    *inputs, o_shape = shapes(c)
    data, values = zip(*(numbers_of.numbers(numbers_of.count(s), c.dtype, rng)
                         for s in inputs[:3]))
    mask = hidden(c)
    mask_data = artifacts_floats(mask)
    want = expected(c, *values, mask)
    largest = max(map(abs, want))
    bound = {"float16": 2e-3, "bfloat16": 1.5e-2}[c.dtype] * largest
    checked = 0
    for seed in range(MOST_SEEDS):
        trace = trace_of(tune_opt, seed)
        if "tilefarm.warpgroup_stages" not in trace or '"wgmma"' not in trace:
            if seed == 0:
                raise AssertionError(f"{c}: the default schedule does not use warpgroups")
            continue
        with open("program.tr", "w") as file:
            file.write(trace)
        for kind in artifacts.KINDS:
            os.environ["TILEFARM_SIM_SEED"] = str(checked)
            name = f"{kind}{checked}.so"
            subprocess.run([tunec, "program.py", "--target", f"{kind}:{TARGET}", "--trace",
                            "program.tr", "-o", name], check=True, stderr=subprocess.DEVNULL)
            out = c.dtype if c.rounds else "float32"
            o = ctypes.create_string_buffer(
                b"\xff" * (numbers_of.count(o_shape) * (2 if c.rounds else 4)))
            failure = artifacts.call(name, *data, mask_data, o)
            error = artifacts.largest_error(want, decode(o.raw[:-1], out))
            if failure or not error <= bound:
                raise AssertionError(f"{c}, {kind}, seed {SEED}, candidate {seed}: "
                                     f"{failure or error} of {largest}\n{trace}")
            print(c, kind, seed, "error", error, "of", largest, flush=True)
            os.remove(name)
        checked += 1
        if checked == DRAWS:
            return
    raise AssertionError(f"{c}: {checked} of {MOST_SEEDS} candidates use warpgroups")


def artifacts_floats(values):
    return (ctypes.c_float * len(values))(*values)


def decode(data, dtype):
    if dtype == "float32":
        return list((ctypes.c_float * (len(data) // 4)).from_buffer_copy(data))
    return numbers_of.decode(data, dtype)


def check_ptx(tune_opt, ptxas, c):
    with open("program.py", "w") as file:
        file.write(program(c))
    ptx = subprocess.run(
        [tune_opt, "program.py", "--target", "cuda:" + TARGET, "--default", "--allow-rounding",
         "--stage", "asm"], check=True, capture_output=True, text=True).stdout
    dims = len(shapes(c)[0])
    artifacts.check_ptx(ptx, c, [], [
        ("wgmma.mma_async", True), ("mma.sync", False),
        (f"cp.async.bulk.tensor.{dims}d.shared::cluster.global.mbarrier", True)])
    if ptxas:
        artifacts.assemble(ptxas, ptx, TARGET, str(c))


def main():
    tune_opt, tunec = (os.path.abspath(path) for path in sys.argv[1:3])
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for c in ATTENTIONS:
            check(tune_opt, tunec, c, rng)
        for c in LARGE:
            check_ptx(tune_opt, artifacts.find_ptxas(), c)


if __name__ == "__main__":
    main()

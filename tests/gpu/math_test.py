"""math_test.py TUNEC: functions of floats in kernels of CUDA, which a driver
without a GPU executes from their PTX. Compared with libm's in float64; the
tolerances are multiples of what a result's last bit is worth.
"""

import array
import ctypes
import math
import os
import random
import subprocess
import sys
import tempfile

import artifacts

SEED = 5
COUNT = 1024
ULPS = {"float32": 4, "float64": 4}
# Their arguments: uniform, or the exponents of 2 of both signs.
BOUNDED = {"acos": (-1, 1), "asin": (-1, 1), "atanh": (-0.99, 0.99),
           "acosh": (1, 1000), "exp": (-80, 80), "exp2": (-120, 120),
           "sinh": (-80, 80), "cosh": (-80, 80), "erf": (-4, 4),
           "tanh": (-10, 10), "log1p": (-0.9, 1000)}
SCALED = ("sin", "cos", "tan", "atan", "asinh")
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt")
THEIRS = {"exp2": lambda x: 2.0 ** x, "rsqrt": lambda x: 1 / math.sqrt(x)}


def program(name, dtype, operands):
    names = [f"A{i}" for i in range(operands)]
    buffers = ", ".join(f'{n}: T.Buffer(({COUNT},), "{dtype}")' for n in names)
    return "\n".join([
        "@T.prim_func",
        f'def main({buffers}, B: T.Buffer(({COUNT},), "{dtype}")):',
        f"    for i in range({COUNT}):",
        '        with T.block("B"):',
        f"            v = T.axis.spatial({COUNT}, i)",
        f"            B[v] = T.{name}({', '.join(n + '[v]' for n in names)})",
    ]) + "\n"


def arguments(name, rng):
    if name in BOUNDED:
        return [rng.uniform(*BOUNDED[name]) for _ in range(COUNT)]
    values = [2.0 ** rng.uniform(-20, 20) for _ in range(COUNT)]
    if name in POSITIVE:
        return values
    return [rng.choice((-1, 1)) * value for value in values]


def last_bit(value, dtype):
    digits, least = {"float32": (24, -149), "float64": (53, -1074)}[dtype]
    return 2.0 ** max(math.frexp(value)[1] - digits, least)


def rounded_exp(x):
    """Of a float32, infinite where that is too large."""
    try:
        value = math.exp(x)
    except OverflowError:
        value = math.inf
    return value if not value >= 2.0 ** 128 * (1 - 2.0 ** -25) else math.inf


def check(tunec, name, dtype, rows, function=None):
    code = {"float32": "f", "float64": "d"}[dtype]
    data = [array.array(code, row) for row in rows]
    with open("program.py", "w") as file:
        file.write(program(name, dtype, len(rows)))
    library = f"{name}_{dtype}.so"
    subprocess.run([tunec, "program.py", "--target", "cuda:sm_80", "-o",
                    library], check=True, stderr=subprocess.DEVNULL)
    result = array.array(code, [math.nan] * COUNT)
    failure = artifacts.call(library, *(
        ctypes.c_void_p(one.buffer_info()[0]) for one in [*data, result]))
    if failure:
        raise AssertionError(f"{name} {dtype}: {failure}")
    function = function or THEIRS.get(name) or getattr(math, name)
    worst = 0
    for values, got in zip(zip(*data), result):
        want = function(*values)
        same = got == want or (math.isnan(got) and math.isnan(want))
        error = 0 if same else abs(got - want) / last_bit(want, dtype)
        worst = max(worst, math.inf if math.isnan(error) else error)
    print(f"{name} {dtype}: {worst:.2f} ulp", flush=True)
    if worst > ULPS[dtype]:
        raise AssertionError(f"{name} {dtype}: {worst} ulp, seed {SEED}")


def check_extremes(tunec, rng):
    """The largest of each row, which is NaN if one of the row is."""
    rows, columns = 16, 64
    with open("program.py", "w") as file:
        file.write(f"""@T.prim_func
def main(A: T.Buffer(({rows}, {columns}), "float32"), B: T.Buffer(({rows},), "float32")):
    for i, k in T.grid({rows}, {columns}):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(-3.4028234663852886e+38)
            B[vi] = T.max(B[vi], A[vi, vk])
""")
    data = array.array("f", [rng.uniform(-9, 9) for _ in range(rows * columns)])
    for row in (1, 5, 9):
        data[row * columns + rng.randrange(columns)] = math.nan
    subprocess.run([tunec, "program.py", "--target", "cuda:sm_80", "-o", "max.so"],
                   check=True, stderr=subprocess.DEVNULL)
    result = array.array("f", [0] * rows)
    failure = artifacts.call("max.so", *(
        ctypes.c_void_p(one.buffer_info()[0]) for one in (data, result)))
    for i, got in enumerate(result):
        row = data[i * columns:(i + 1) * columns]
        nan = any(map(math.isnan, row))
        if failure or (not math.isnan(got) if nan else got != max(row)):
            raise AssertionError(f"row {i}: {failure or got}, seed {SEED}")


def main():
    tunec = os.path.abspath(sys.argv[1])
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for dtype in ULPS:
            for name in [*BOUNDED, *SCALED, *POSITIVE]:
                check(tunec, name, dtype, [arguments(name, rng)])
            check(tunec, "pow", dtype,
                  [[rng.uniform(0.01, 20) for _ in range(COUNT)],
                   [rng.uniform(-20, 20) for _ in range(COUNT)]])
            check(tunec, "atan2", dtype,
                  [[rng.uniform(-9, 9) for _ in range(COUNT)]
                   for _ in range(2)])
        # Where the power of 2 is subnormal, 0 or infinite.
        edges = [-math.inf, -1e30, -126 * math.log(2), -88, -95, -103.9, -104,
                 -150, -0.0, 88.7, 88.73, 128, 1e30, math.inf, math.nan]
        check(tunec, "exp", "float32",
              [[edges[i % len(edges)] if i < 4 * len(edges) else
                rng.uniform(-104, 88.8) for i in range(COUNT)]], rounded_exp)
        check_extremes(tunec, rng)
        os.chdir("/")


if __name__ == "__main__":
    main()

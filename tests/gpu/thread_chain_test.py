"""thread_chain_test.py TUNE_OPT TUNEC: attention as one kernel that rounds as written.

The default schedule without --allow-rounding and candidates like it, in the simulator and
as PTX, with asynchronous copies and without, against attention in float64: rows, keys and
vectors that no tile divides, masks in a block of their own that hide whole rows, heads that
are parts of rows. float16 on tensor cores, on padded tiles.
"""

import ctypes
import os
import random
import subprocess
import sys
import tempfile

import artifacts
import wgmma_attention_test as attention
import wgmma_conv_test as numbers_of
from wgmma_attention_test import Attention

SEED = 31
DRAWS = 2
MOST_SEEDS = 400
BOUND = {"float32": 1e-5, "float16": 2e-3}
TARGETS = ["sm_75", "sm_90a"]
ATTENTIONS = [
    Attention(3, 37, 37, 20, 20, "float32", 0.125),
    Attention(4, 32, 64, 16, 32, "float32", None, "block"),
    Attention(0, 203, 49, 24, 18, "float32", 0.25, True),
    Attention(20, 9, 70, 8, 8, "float32", None, "block"),
    Attention(3, 41, 50, 20, 24, "float32", 0.25, False, False, True),
    Attention(2, 50, 37, 16, 16, "float16", 0.25, False, False, True),
    Attention(2, 41, 70, 24, 20, "float16", None, "block"),
]


def trace_of(tune_opt, target, seed):
    how = ["--draw", str(seed)] if seed else ["--default"]
    return subprocess.run(
        [tune_opt, "program.py", "--target", "sim:" + target, *how, "--stage", "trace"],
        check=True, capture_output=True, text=True).stdout


def kernels_of(tune_opt, target):
    """Of the schedule in program.tr, and whether it uses tensor cores."""
    ptx = subprocess.run(
        [tune_opt, "program.py", "--target", "cuda:" + target, "--trace", "program.tr",
         "--stage", "asm"], check=True, capture_output=True, text=True).stdout
    return ptx.count(".entry"), "mma.sync" in ptx


def check(tune_opt, tunec, c, target, rng):
    with open("program.py", "w") as file:
        file.write(attention.program(c))
    *inputs, o_shape = attention.shapes(c)
    data, values = zip(*(numbers_of.numbers(numbers_of.count(s), c.dtype, rng)
                         for s in inputs[:3]))
    mask = attention.hidden(c)
    mask_data = attention.artifacts_floats(mask)
    want = attention.expected(c, *values, mask)
    largest = max(map(abs, want))
    checked = 0
    for seed in range(MOST_SEEDS):
        with open("program.tr", "w") as file:
            file.write(trace_of(tune_opt, target, seed))
        kernels, on_tensor_cores = kernels_of(tune_opt, target)
        # float32 rounds as written by default.
        unwanted = seed == 0 and on_tensor_cores != (c.dtype == "float16")
        if kernels != 1 or unwanted:
            if seed == 0:
                raise AssertionError(f"{c}, {target}: the default schedule has {kernels} kernels"
                                     f"{', tensor cores' if on_tensor_cores else ''}")
            continue
        for kind in artifacts.KINDS:
            os.environ["TILEFARM_SIM_SEED"] = str(checked)
            name = f"{kind}{checked}.so"
            subprocess.run([tunec, "program.py", "--target", f"{kind}:{target}", "--trace",
                            "program.tr", "-o", name], check=True, stderr=subprocess.DEVNULL)
            o = (ctypes.c_float * numbers_of.count(o_shape))(
                *[float("nan")] * numbers_of.count(o_shape))
            failure = artifacts.call(name, *data, mask_data, o)
            error = artifacts.largest_error(want, o)
            if failure or not error <= BOUND[c.dtype] * largest:
                with open("program.tr") as file:
                    raise AssertionError(f"{c}, {kind}:{target}, seed {SEED}, candidate {seed}: "
                                         f"{failure or error} of {largest}\n{file.read()}")
            print(c, kind, target, seed, "error", error, "of", largest, flush=True)
            os.remove(name)
        checked += 1
        if checked == DRAWS:
            return
    raise AssertionError(f"{c}: {checked} of {MOST_SEEDS} candidates are one kernel")


def main():
    tune_opt, tunec = (os.path.abspath(path) for path in sys.argv[1:3])
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for c in ATTENTIONS:
            for target in TARGETS:
                check(tune_opt, tunec, c, target, rng)


if __name__ == "__main__":
    main()

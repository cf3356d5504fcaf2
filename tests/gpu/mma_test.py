"""mma_test.py TUNE_OPT TUNEC: matrix products on the tensor cores of warps.

In the simulator and as PTX against sums in float64, and what the PTX has. Where
ptxas is installed, it must not spill registers.
"""

import array
import ctypes
import itertools
import operator
import os
import random
import struct
import subprocess
import sys
import tempfile

import artifacts
import mma_traces

SEED = 7
# Between them: all types and layouts; one to four stages; one warp and several;
# one instruction, and several steps; numbers of tiles that are not powers of 2.
CHECKED = [
    "mm128_f16_nn_128x128x32_64x64_s3",
    "mm192x128x160_f16_nt_64x128x32_32x32_s4",
    "mm128x192x96_f16_nn_64x64x16_64x64_s1",
    "mm64x96x112_f16_nn_64x32x16_32x32_s2",
    "mm128_bf16_nn_128x64x32_64x32_s2",
    "mm128x64x192_bf16_nt_64x64x64_32x32_s3",
    "mm128_f32_nn_128x128x16_64x32_s3",
    "mm64x192x120_f32_nt_64x64x8_32x32_s2",
    "mm128_s8_nt_128x64x64_64x32_s3",
    "mm64x128x160_s8_nn_64x64x32_32x32_s2",
    "mm128x64x96_u8_nt_64x64x32_32x32_s1",
]
# Programs whose candidates are drawn: among them products of one block, and
# sizes that are no powers of 2.
DRAWN = [
    ((128, 128, 64), "f16", "nn"),
    ((256, 64, 96), "f16", "nt"),
    ((64, 96, 64), "bf16", "nn"),
    ((96, 64, 64), "s8", "nt"),
    ((64, 128, 64), "s8", "nn"),
    ((64, 64, 64), "f32", "nn"),
    ((128, 64, 48), "f32", "nt"),
    ((48, 24, 32), "f16", "nn"),
    # Padded.
    ((100, 72, 40), "f16", "nn"),
    ((33, 65, 127), "bf16", "nt"),
    ((50, 30, 100), "s8", "nt"),
    ((61, 67, 71), "f32", "nn"),
]
DRAWS = 10
PTX_DRAWS = 3  # the first of them
# With the number of products and of loads, for blocks of 128 x 128 and 128 x
# 256, and warp tiles of 64 x 32 and 64 x 64.
ASSEMBLED = [
    ("mm512_f16_nn_128x128x32_64x64_s3", "m16n8k16.row.col.f32.f16.f16.f32",
     64, 16),
    ("mm512_f16_nt_128x256x32_64x64_s4", "m16n8k16.row.col.f32.f16.f16.f32",
     64, 16),
    ("mm512_bf16_nn_128x256x32_64x32_s3",
     "m16n8k16.row.col.f32.bf16.bf16.f32", 32, 12),
    ("mm512_f32_nn_128x128x16_64x32_s3", "m16n8k8.row.col.f32.tf32.tf32.f32",
     96, 8),
    ("mm512_f32_nt_128x128x16_64x32_s3", "m16n8k8.row.col.f32.tf32.tf32.f32",
     96, 12),
    ("mm512_s8_nt_128x256x64_64x64_s3", "m16n8k32.row.col.s32.s8.s8.s32", 64,
     16),
]


def encode(kind, value):
    """The bytes of the number, and its value as the type has it."""
    if kind in ("s8", "u8"):
        return struct.pack("b" if kind == "s8" else "B", value), value
    if kind == "f16":
        data = struct.pack("<e", value)
        return data, struct.unpack("<e", data)[0]
    data = struct.pack("<f", value)
    if kind == "bf16":
        data = data[2:]
        return data, struct.unpack("<f", b"\0\0" + data)[0]
    return data, struct.unpack("<f", data)[0]


def matrix(kind, rows, columns, rng):
    draw = {"s8": lambda: rng.randint(-128, 127),
            "u8": lambda: rng.randint(0, 255)}.get(
                kind, lambda: rng.gauss(0, 1))
    elements = [encode(kind, draw()) for _ in range(rows * columns)]
    values = [value for _, value in elements]
    return (b"".join(data for data, _ in elements),
            [values[r * columns:(r + 1) * columns] for r in range(rows)])


def run(path, size, kind, layout, rng):
    """Empty, or how the artifact differs from sums in float64."""
    m, n, k = size
    a_data, a = matrix(kind, m, k, rng)
    b_data, b = matrix(kind, *((n, k) if layout == "nt" else (k, n)), rng)
    columns = b if layout == "nt" else list(zip(*b))
    integers = kind in ("s8", "u8")
    result = array.array("i" if integers else "f", bytes(4 * m * n))
    failure = artifacts.call(
        path, a_data, b_data, ctypes.c_void_p(result.buffer_info()[0]))
    if failure:
        return failure
    expected = [sum(map(operator.mul, row, column))
                for row in a for column in columns]
    largest = max(map(abs, expected))
    error = artifacts.largest_error(expected, result)
    # Rounding of float32 sums; far below one of tf32 or of a 16-bit type.
    bound = 0 if integers else 2e-6 * largest
    return "" if error <= bound else f"an error of {error} of {largest}"


def check(tunec, name, rng):
    size, kind, layout, _ = mma_traces.parse(name)
    mma_traces.write(".", name)
    # Those of float16 are also of two instructions, before sm_80.
    models = ["sm_90a", "sm_75"] if "_f16_" in name else ["sm_90a"]
    for target, model in itertools.product(artifacts.KINDS, models):
        path = f"{name}_{target}_{model}.so"
        subprocess.run([tunec, name + ".py", "--target", f"{target}:{model}",
                        "--trace", name + ".tr", "-o", path], check=True)
        error = run(path, size, kind, layout, rng)
        print(path, error or "ok", flush=True)
        if error:
            raise AssertionError(f"{path}: {error}, seed {SEED}")


def draw(tune_opt, tunec, size, kind, layout, rng):
    """Candidates of the design space, the default one first. Of sm_80, as those
    of sm_90a are products of warpgroups (wgmma_test.py)."""
    with open("program.py", "w") as file:
        file.write(mma_traces.program(size, kind, layout))
    tensor = 0
    for seed in range(DRAWS):
        trace = subprocess.run(
            [tune_opt, "program.py", "--target", "sim:sm_80", "--draw",
             str(seed), "--stage", "trace"], check=True, capture_output=True,
            text=True).stdout
        on_tensor_cores = "tilefarm.warp_matrix" in trace
        tensor += on_tensor_cores
        if seed == 0 and on_tensor_cores != (kind != "f32"):
            raise AssertionError(f"the default schedule of {size} {kind}")
        with open("program.tr", "w") as file:
            file.write(trace)
        for target in artifacts.KINDS if seed < PTX_DRAWS else ("sim",):
            path = f"{target}_{kind}_{layout}_{size[0]}_{seed}.so"
            subprocess.run([tunec, "program.py", "--target", target + ":sm_80",
                            "--trace", "program.tr", "-o", path], check=True)
            error = run(path, size, kind, layout, rng)
            if error:
                raise AssertionError(f"{path}: {error}\n{trace}")
    print(size, kind, layout, "on tensor cores:", tensor, "of", DRAWS,
          flush=True)
    if tensor == 0:
        raise AssertionError(f"no candidates of {size} {kind} {layout}")


def assemble(tune_opt, ptxas, name, instruction, products, loads):
    mma_traces.write(".", name)
    for model in ("sm_80", "sm_90a"):
        ptx = subprocess.run(
            [tune_opt, name + ".py", "--target", "cuda:" + model, "--trace",
             name + ".tr", "--stage", "asm"], check=True,
            capture_output=True, text=True).stdout
        artifacts.check_ptx(
            ptx, f"{name}, {model}",
            counts=(("mma.sync.aligned." + instruction, products),
                    ("ldmatrix.sync.aligned.m8n8.x", loads)),
            has=(("cp.async.cg.shared.global", True), ("st.global.v2", True),
                 ("st.global.f32", False), (".local", False)))
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
        for program in DRAWN:
            draw(tune_opt, tunec, *program, rng)
        for variant in ASSEMBLED:
            assemble(tune_opt, ptxas, *variant)
        os.chdir("/")


if __name__ == "__main__":
    main()

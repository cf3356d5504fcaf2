"""wgmma_conv_test.py TUNE_OPT TUNEC: convolutions whose windows the copy engine fetches.

Candidates for sm_90a that warpgroups compute, in the simulator and as PTX, against
sums in float64: one to three spatial dimensions, strides, dilations, padding of each
side, channels in several parts, one image or none, tiles that begin and end anywhere in
an image. Where ptxas is installed, large kernels must not spill.
"""

import collections
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

SEED = 12
DRAWS = 2
MOST_SEEDS = 100
TARGET = "sm_90a"

# By spatial dimension: size, kernel, stride, dilation, padding before and after.
# images 0: the tensor has no such dimension. `boxes`: no windows, but a matrix. `last`:
# the filters are the weights' last dimension, as the compiler orders constants. `first`:
# channels are before the dimensions of space, and first of what is summed.
Conv = collections.namedtuple(
    "Conv", "images channels filters space dtype boxes last first",
    defaults=["float16", False, False, False])
Along = collections.namedtuple("Along", "size kernel stride dilation before after",
                               defaults=[1, 1, 0, 0])
CONVS = [
    Conv(2, 64, 64, [Along(10, 3, 1, 1, 1, 1), Along(9, 3, 1, 1, 1, 1)]),
    Conv(1, 128, 64, [Along(17, 3, 2, 1, 1, 1), Along(15, 3, 2, 1, 1, 1)], last=True),
    Conv(3, 128, 72, [Along(10, 1, 2), Along(9, 1, 2)], "bfloat16"),
    Conv(2, 96, 64, [Along(7, 1), Along(9, 1)], "float16", True),
    Conv(1, 64, 64, [Along(12, 5, 1, 2, 3, 4), Along(11, 3, 1, 2, 0, 2)], "bfloat16"),
    Conv(1, 64, 64, [Along(22, 3, 2, 2, 2, 2), Along(21, 3, 2, 2, 2, 2)]),
    Conv(3, 64, 64, [Along(30, 3, 1, 1, 1, 1)]),
    Conv(1, 64, 64, [Along(6, 3, 1, 1, 1, 1), Along(5, 3, 1, 1, 1, 1), Along(4, 3, 1, 1, 1, 1)]),
    Conv(0, 64, 64, [Along(9, 3, 1, 1, 2, 0), Along(10, 3, 1, 1, 0, 2)]),
    Conv(2, 64, 64, [Along(10, 3, 1, 1, 1, 1), Along(9, 3, 1, 1, 1, 1)], first=True),
    Conv(3, 128, 72, [Along(17, 2, 2, 1, 0, 1), Along(15, 3, 2, 1, 1, 1)], "bfloat16",
         first=True),
    Conv(4, 128, 64, [Along(8, 3, 1, 1, 1, 1), Along(8, 3, 1, 1, 1, 1)], "int8"),
]
LARGE = [
    Conv(16, 64, 64, [Along(56, 3, 1, 1, 1, 1)] * 2),
    Conv(16, 128, 128, [Along(56, 3, 2, 1, 1, 1)] * 2),
    Conv(16, 256, 1024, [Along(14, 1)] * 2, "bfloat16", True),
    Conv(32, 512, 512, [Along(7, 3, 1, 1, 1, 1)] * 2),
    Conv(16, 256, 256, [Along(14, 3, 1, 1, 1, 1)] * 2, first=True),
]


def length(s):
    return (s.size + s.before + s.after - s.dilation * (s.kernel - 1) - 1) // s.stride + 1


def ordered(c, images, space, channels):
    """The list of what the three are, in the order of dimensions."""
    return images + ([channels] + space if c.first else space + [channels])


def shapes(c):
    images = [c.images] if c.images else []
    window = ordered(c, [], [s.kernel for s in c.space], c.channels)
    return (ordered(c, images, [s.size for s in c.space], c.channels),
            window + [c.filters] if c.last else [c.filters] + window,
            ordered(c, images, [length(s) for s in c.space], c.filters))


def grid(shape):
    return ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")


def program(c):
    """Y = max(conv(pad(X), W) + B, 0), in the type of X; integers as they are."""
    x, w, y = shapes(c)
    images = 1 if c.images else 0
    dims = len(c.space)
    at_space = images + (1 if c.first else 0)  # their first dimension
    padded = list(x)
    for d, s in enumerate(c.space):
        padded[at_space + d] += s.before + s.after
    sums = "int32" if c.dtype == "int8" else "float32"
    v = [f"v{i}" for i in range(len(x))]
    filters = v[images if c.first else -1]
    space = v[at_space:at_space + dims]
    inside = [f"{s.before} <= {name} and {name} < {s.size + s.before}"
              for name, s in zip(space, c.space)]
    source = ordered(c, v[:images], [f"{name} - {s.before}" for name, s in zip(space, c.space)],
                     filters)
    kernel = [f"r{d}" for d in range(dims)]
    place = ordered(c, v[:images],
                    [f"{name} * {s.stride} + {k} * {s.dilation}"
                     for name, k, s in zip(space, kernel, c.space)], "rc")
    reduced = ordered(c, [], [s.kernel for s in c.space], c.channels)
    loops = [f"i{k}" for k in range(len(y) + len(reduced))]
    at = ", ".join(v)
    kinds = "S" * len(y) + "R" * len(reduced)
    copies = [f"i{k}" for k in range(len(x))]
    out = sums if c.dtype == "int8" else c.dtype
    result = (f"S[{at}]" if c.dtype == "int8" else
              f'T.Cast("{out}", T.max(S[{at}] + B[{filters}], T.float32(0)))')
    terms = ordered(c, [], kernel, "rc")
    weight = terms + [filters] if c.last else [filters] + terms
    return "\n".join([
        "@T.prim_func",
        f'def main(X: T.Buffer(({grid(x)}), "{c.dtype}"), W: T.Buffer(({grid(w)}), "{c.dtype}"), '
        f'B: T.Buffer(({c.filters},), "float32"), Y: T.Buffer(({grid(y)}), "{out}")):',
        f'    P = T.alloc_buffer(({grid(padded)}), "{c.dtype}")',
        f'    S = T.alloc_buffer(({grid(y)}), "{sums}")',
        f"    for {', '.join(copies)} in T.grid({grid(padded)}):",
        '        with T.block("P"):',
        f'            {at} = T.axis.remap("{"S" * len(x)}", [{", ".join(copies)}])',
        f"            P[{at}] = T.if_then_else({' and '.join(inside)}, X[{', '.join(source)}], "
        f"T.{c.dtype}(0))",
        f"    for {', '.join(loops)} in T.grid({grid(y + reduced)}):",
        '        with T.block("conv"):',
        f'            {at}, {", ".join(terms)} = T.axis.remap("{kinds}", [{", ".join(loops)}])',
        "            with T.init():",
        f"                S[{at}] = T.{sums}(0)",
        f'            S[{at}] = S[{at}] + T.Cast("{sums}", P[{", ".join(place)}])'
        f' * T.Cast("{sums}", W[{", ".join(weight)}])',
        f"    for {', '.join(copies)} in T.grid({grid(y)}):",
        '        with T.block("Y"):',
        f'            {at} = T.axis.remap("{"S" * len(y)}", [{", ".join(copies)}])',
        f"            Y[{at}] = {result}",
    ]) + "\n"


def numbers(count, dtype, rng):
    """The bytes of random numbers, and their values as the type has them."""
    if dtype == "int8":
        values = [rng.randint(-128, 127) for _ in range(count)]
        return struct.pack(f"<{count}b", *values), values
    values = [rng.gauss(0, 1) for _ in range(count)]
    if dtype == "bfloat16":
        data = b"".join(struct.pack("<f", value)[2:] for value in values)
        return data, [struct.unpack("<f", b"\0\0" + data[2 * i:2 * i + 2])[0]
                      for i in range(count)]
    code = {"float16": "e", "float32": "f"}[dtype]
    data = struct.pack(f"<{count}{code}", *values)
    return data, list(struct.unpack(f"<{count}{code}", data))


def decode(data, dtype):
    if dtype == "int8":
        return list(struct.unpack(f"<{len(data) // 4}i", data))
    if dtype == "float16":
        return list(struct.unpack(f"<{len(data) // 2}e", data))
    return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]


def count(shape):
    total = 1
    for n in shape:
        total *= n
    return total


def channels_last(values, channels, count):
    """Of `count` blocks of which each has the channels first."""
    each = len(values) // count
    blocks = [values[i * each:(i + 1) * each] for i in range(count)]
    return [block[k * (each // channels) + i] for block in blocks
            for i in range(each // channels) for k in range(channels)]


def expected(c, x, w, b):
    """For each window, the channels of its elements, those outside of the image 0."""
    channels, images = c.channels, max(c.images, 1)
    if c.first:
        x = channels_last(x, channels, images)
        w = channels_last(w, channels, c.filters)
    filters = [w[i::c.filters] if c.last else
               w[i * len(w) // c.filters:(i + 1) * len(w) // c.filters]
               for i in range(c.filters)]
    zeros = [0] * channels
    result = []
    for place in itertools.product(range(images), *(range(length(s)) for s in c.space)):
        window = []
        for taps in itertools.product(*(range(s.kernel) for s in c.space)):
            at = place[0]
            inside = True
            for s, p, t in zip(c.space, place[1:], taps):
                k = p * s.stride + t * s.dilation - s.before
                inside &= 0 <= k < s.size
                at = at * s.size + k
            window += x[at * channels:(at + 1) * channels] if inside else zeros
        for f, taps in enumerate(filters):
            total = sum(map(operator.mul, window, taps))
            result.append(total if c.dtype == "int8" else max(total + b[f], 0.0))
    # As if the windows of an image were the channels of a filter.
    return channels_last(result, len(result) // images // c.filters, images) if c.first else result


def trace_of(tune_opt, seed):
    """Of the default schedule (0) or a candidate."""
    return subprocess.run(
        [tune_opt, "program.py", "--target", "sim:" + TARGET, "--draw", str(seed), "--stage",
         "trace"], check=True, capture_output=True, text=True).stdout


def check(tune_opt, tunec, c, rng):
    with open("program.py", "w") as file:
        file.write(program(c))
    x_shape, w_shape, y_shape = shapes(c)
    x_data, x = numbers(count(x_shape), c.dtype, rng)
    w_data, w = numbers(count(w_shape), c.dtype, rng)
    b_data, b = numbers(c.filters, "float32", rng)
    want = expected(c, x, w, b)
    largest = max(map(abs, want))
    bound = {"int8": 0, "float16": 6e-4, "bfloat16": 5e-3}[c.dtype] * largest
    checked = 0
    for seed in range(MOST_SEEDS):
        trace = trace_of(tune_opt, seed)
        if "tilefarm.warpgroup_stages" not in trace:
            continue
        with open("program.tr", "w") as file:
            file.write(trace)
        lowered = subprocess.run(
            [tune_opt, "program.py", "--target", "sim:" + TARGET, "--trace", "program.tr"],
            check=True, capture_output=True, text=True).stdout
        if ("copy_windows" in lowered) == c.boxes:
            raise AssertionError(f"{c}, candidate {seed}: windows where boxes do, or none")
        for kind in artifacts.KINDS:
            os.environ["TILEFARM_SIM_SEED"] = str(checked)
            name = f"{kind}{checked}.so"
            subprocess.run([tunec, "program.py", "--target", f"{kind}:{TARGET}", "--trace",
                            "program.tr", "-o", name], check=True, stderr=subprocess.DEVNULL)
            y = ctypes.create_string_buffer(b"\xff" * (count(y_shape) * (4 if c.dtype == "int8" else 2)))
            failure = artifacts.call(name, x_data, w_data, b_data, y)
            error = artifacts.largest_error(want, decode(y.raw[:-1], c.dtype))
            if failure or not error <= bound:
                raise AssertionError(f"{c}, {kind}, seed {SEED}, candidate {seed}: "
                                     f"{failure or error} of {largest}\n{trace}")
            print(c, kind, seed, "error", error, "of", largest, flush=True)
            os.remove(name)
        checked += 1
        if checked == DRAWS:
            return
    raise AssertionError(f"{c}: {checked} of {MOST_SEEDS} candidates use warpgroups")


def check_ptx(tune_opt, ptxas, c):
    with open("program.py", "w") as file:
        file.write(program(c))
    ptx = subprocess.run(
        [tune_opt, "program.py", "--target", "cuda:" + TARGET, "--default", "--stage", "asm"],
        check=True, capture_output=True, text=True).stdout
    dims = 2 if c.boxes else len(shapes(c)[0])
    mode = "" if c.boxes else ".im2col"
    artifacts.check_ptx(ptx, c, [], [
        ("wgmma.mma_async", True),
        (f"cp.async.bulk.tensor.{dims}d.shared::cluster.global{mode}.mbarrier", True)])
    if ptxas:
        artifacts.assemble(ptxas, ptx, TARGET, str(c))


def main():
    tune_opt, tunec = (os.path.abspath(path) for path in sys.argv[1:3])
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for c in CONVS:
            check(tune_opt, tunec, c, rng)
        for c in LARGE:
            check_ptx(tune_opt, artifacts.find_ptxas(), c)


if __name__ == "__main__":
    main()

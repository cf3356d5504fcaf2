"""The operator classes of the Ansor paper (OSDI 2020), batch 1, as TVMScript.

Two shapes of each of the 13 classes, in the spelling that TVM prints today, so
that TVM and Tilefarm read the same text. `entries(Entry)` makes the suite's
entries; they have no library as peer.
"""

import math

LEAST = "T.float32(-3.4028234663852886e+38)"


def _dims(dims):
    return "(" + ", ".join(map(str, dims)) + ("," if len(dims) == 1 else
                                              "") + ")"


def _index(parts):
    return ", ".join(parts)


class Program:
    """One PrimFunc in the making; counts its work."""

    def __init__(self, *parameters):
        self.parameters = parameters    # (name, dims); the last is the output
        self.body = []

    def alloc(self, name, dims):
        self.body.append(
            f'{name} = T.sblock_alloc_buffer({_dims(dims)}, "float32")')

    def block(self, name, axes, statement, init=None):
        """axes: "n:1 l:128 rl:3r": name, extent, r for a reduce axis."""
        names, extents, kinds = [], [], ""
        for axis in axes.split():
            variable, extent = axis.split(":")
            kinds += "R" if extent.endswith("r") else "S"
            names.append(variable)
            extents.append(extent.rstrip("r"))
        several = len(names) > 1
        self.body += [
            f"for {', '.join(names)} in "
            + (f"T.grid({', '.join(extents)}):" if several
               else f"range({extents[0]}):"),
            f'    with T.sblock("{name}"):',
            f"        {', '.join('v_' + n for n in names)} = "
            f'T.axis.remap("{kinds}", [{", ".join(names)}])']
        if init:
            self.body += ["        with T.init():", "            " + init]
        self.body.append("        " + statement)

    def pad(self, source, into, dims, border):
        """`into` is `source` with border[i] zeros before and after axis i."""
        self.alloc(into, [d + 2 * b for d, b in zip(dims, border)])
        axes = [f"i{i}:{d + 2 * b}"
                for i, (d, b) in enumerate(zip(dims, border))]
        inside = " and ".join(
            f"{b} <= v_i{i} and v_i{i} < {d + b}"
            for i, (d, b) in enumerate(zip(dims, border)) if b)
        at = _index(f"v_i{i}" for i in range(len(dims)))
        value = f"{source}[" + _index(
            f"v_i{i} - {b}" if b else f"v_i{i}"
            for i, b in enumerate(border)) + "]"
        if inside:
            value = f"T.if_then_else({inside}, {value}, T.float32(0.0))"
        self.block(into, " ".join(axes), f"{into}[{at}] = {value}")

    def add(self, name, axes, into, value):
        self.block(name, axes, f"{into} = {into} + {value}",
                   f"{into} = T.float32(0.0)")

    def text(self):
        parameters = ", ".join(f'{name}: T.Buffer({_dims(dims)}, "float32")'
                               for name, dims in self.parameters)
        lines = ["# from tvm.script import ir as I",
                 "# from tvm.script import tirx as T", "", "@I.ir_module",
                 "class Module:", "    @T.prim_func(s_tir=True)",
                 f"    def main({parameters}):",
                 '        T.func_attr({"tirx.noalias": True})']
        return "\n".join(lines + ["        " + s for s in self.body]) + "\n"


def convolution(rank, size, cin, cout, kernel, stride=1, padding=0,
                dilation=1, groups=1):
    """Channels last; `size` has `rank` extents. Returns program and flops."""
    space = "dhw"[-rank:] if rank > 1 else "l"
    border = [0] + [padding] * rank + [0]
    out = [(s + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
           for s in size]
    program = Program(
        ("inputs", [1, *size, cin]),
        ("weight", [kernel] * rank + [cin // groups, cout]),
        ("output", [1, *out, cout]))
    program.pad("inputs", "padded", [1, *size, cin], border)
    axes = ("n:1 " + " ".join(f"{v}:{e}" for v, e in zip(space, out))
            + f" co:{cout} " + " ".join(f"r{v}:{kernel}r" for v in space)
            + f" rc:{cin // groups}r")
    place = [(f"v_{v} * {stride}" if stride > 1 else f"v_{v}") + " + "
             + (f"v_r{v} * {dilation}" if dilation > 1 else f"v_r{v}")
             for v in space]
    # As TVM's operators say it, also where there is one group.
    channel = f"v_co // {cout // groups} * {cin // groups} + v_rc"
    taps = [f"v_r{v}" for v in space]
    at = _index(["v_n"] + [f"v_{v}" for v in space] + ["v_co"])
    program.add(
        "conv", axes, f"output[{at}]",
        f"padded[{_index(['v_n'] + place + [channel])}] * "
        f"weight[{_index(taps + ['v_rc', 'v_co'])}]")
    return program, (2.0 * math.prod(out) * cout * kernel ** rank
                     * cin // groups)


def depthwise(size, channels, kernel, stride, padding):
    out = (size + 2 * padding - kernel) // stride + 1
    program = Program(("inputs", [1, size, size, channels]),
                      ("weight", [1, kernel, kernel, channels]),
                      ("output", [1, out, out, channels]))
    program.pad("inputs", "padded", [1, size, size, channels],
                [0, padding, padding, 0])
    by = f" * {stride}" if stride > 1 else ""
    program.add("conv", f"n:1 h:{out} w:{out} c:{channels} rh:{kernel}r "
                f"rw:{kernel}r", "output[v_n, v_h, v_w, v_c]",
                f"padded[v_n, v_h{by} + v_rh, v_w{by} + v_rw, v_c] * "
                "weight[0, v_rh, v_rw, v_c]")
    return program, 2.0 * out * out * channels * kernel * kernel


def transposed(size, cin, cout, kernel=4, stride=2, padding=1):
    out = (size - 1) * stride - 2 * padding + kernel
    # The first output that a row of the input reaches, in whole strides.
    border = (kernel - 1 - padding + stride - 1) // stride
    program = Program(("inputs", [1, size, size, cin]),
                      ("weight", [kernel, kernel, cin, cout]),
                      ("output", [1, out, out, cout]))
    program.pad("inputs", "padded", [1, size, size, cin],
                [0, border, border, 0])
    row, column = f"(v_h + v_rh) // {stride}", f"(v_w + v_rw) // {stride}"
    program.add(
        "conv", f"n:1 h:{out} w:{out} co:{cout} rh:{kernel}r rw:{kernel}r "
        f"rc:{cin}r", "output[v_n, v_h, v_w, v_co]",
        f"T.if_then_else((v_h + v_rh) % {stride} == 0 and (v_w + v_rw) % "
        f"{stride} == 0, padded[v_n, {row}, {column}, v_rc], "
        f"T.float32(0.0)) * weight[{kernel - 1} - v_rh, {kernel - 1} - v_rw, "
        "v_rc, v_co]")
    # Of the taps, one in stride x stride meets an input.
    return program, 2.0 * out * out * cout * cin * (kernel / stride) ** 2


def capsule(size, cin, cout, kernel=3, stride=2, padding=1, poses=4):
    out = (size + 2 * padding - kernel) // stride + 1
    pose = [poses, poses]
    program = Program(("inputs", [1, size, size, *pose, cin]),
                      ("weight", [kernel, kernel, *pose, cin, cout]),
                      ("output", [1, out, out, *pose, cout]))
    program.pad("inputs", "padded", [1, size, size, *pose, cin],
                [0, padding, padding, 0, 0, 0])
    program.add(
        "conv", f"n:1 h:{out} w:{out} i:{poses} j:{poses} co:{cout} "
        f"rh:{kernel}r rw:{kernel}r k:{poses}r rc:{cin}r",
        "output[v_n, v_h, v_w, v_i, v_j, v_co]",
        f"padded[v_n, v_h * {stride} + v_rh, v_w * {stride} + v_rw, v_i, v_k, "
        "v_rc] * weight[v_rh, v_rw, v_k, v_j, v_rc, v_co]")
    return program, (2.0 * out * out * poses ** 3 * cout * kernel * kernel
                     * cin)


def matmul(n):
    program = Program(("X", [1, n, n]), ("Y", [1, n, n]), ("Z", [1, n, n]))
    program.add("matmul", f"b:1 i:{n} j:{n} k:{n}r", "Z[v_b, v_i, v_j]",
                "X[v_b, v_i, v_k] * Y[v_b, v_k, v_j]")
    return program, 2.0 * n ** 3


def transposed_matmul(length, heads, depth):
    program = Program(("query", [1, length, heads, depth]),
                      ("value", [1, length, heads, depth]),
                      ("C", [1, heads, length, length]))
    program.alloc("query_T", [1, heads, length, depth])
    program.alloc("value_T", [1, heads, depth, length])
    program.block("query_T", f"b:1 h:{heads} l:{length} d:{depth}",
                  "query_T[v_b, v_h, v_l, v_d] = query[v_b, v_l, v_h, v_d]")
    program.block("value_T", f"b:1 h:{heads} d:{depth} l:{length}",
                  "value_T[v_b, v_h, v_d, v_l] = value[v_b, v_l, v_h, v_d]")
    program.add("matmul", f"b:1 h:{heads} i:{length} j:{length} k:{depth}r",
                "C[v_b, v_h, v_i, v_j]",
                "query_T[v_b, v_h, v_i, v_k] * value_T[v_b, v_h, v_k, v_j]")
    return program, 2.0 * heads * length * length * depth


def norm(n):
    program = Program(("A", [1, n, n]), ("D", [1]))
    program.alloc("C", [1])
    program.add("squares", f"b:1 i:{n}r j:{n}r", "C[v_b]",
                "A[v_b, v_i, v_j] * A[v_b, v_i, v_j]")
    program.block("root_of_sum", "b:1", "D[v_b] = T.sqrt(C[v_b])")
    return program, 2.0 * n * n


def softmax(n):
    program = Program(("A", [n, n]), ("B", [n, n]))
    for name, dims in (("largest", [n]), ("e", [n, n]), ("total", [n])):
        program.alloc(name, dims)
    program.block("largest", f"i:{n} k:{n}r",
                  "largest[v_i] = T.max(largest[v_i], A[v_i, v_k])",
                  f"largest[v_i] = {LEAST}")
    program.block("exp", f"i:{n} j:{n}",
                  "e[v_i, v_j] = T.exp(A[v_i, v_j] - largest[v_i])")
    program.add("total", f"i:{n} k:{n}r", "total[v_i]", "e[v_i, v_k]")
    program.block("normalise", f"i:{n} j:{n}",
                  "B[v_i, v_j] = e[v_i, v_j] / total[v_i]")
    return program, 5.0 * n * n


def conv_bn_relu(size, cin, cout, kernel, stride, padding):
    out = (size + 2 * padding - kernel) // stride + 1
    program = Program(
        ("data", [1, size, size, cin]), ("kernel", [kernel, kernel, cin, cout]),
        ("bias", [cout]), ("bn_offset", [cout]), ("bn_scale", [cout]),
        ("output", [1, out, out, cout]))
    program.pad("data", "padded", [1, size, size, cin],
                [0, padding, padding, 0])
    for name in ("sum", "biased", "scaled", "shifted"):
        program.alloc(name, [1, out, out, cout])
    by = f" * {stride}" if stride > 1 else ""
    at = "v_n, v_h, v_w, v_co"
    axes = f"n:1 h:{out} w:{out} co:{cout}"
    program.add(
        "conv", f"{axes} rh:{kernel}r rw:{kernel}r rc:{cin}r", f"sum[{at}]",
        f"padded[v_n, v_h{by} + v_rh, v_w{by} + v_rw, v_rc] * "
        "kernel[v_rh, v_rw, v_rc, v_co]")
    for name, value in (
            ("biased", f"sum[{at}] + bias[v_co]"),
            ("scaled", f"biased[{at}] * bn_scale[v_co]"),
            ("shifted", f"scaled[{at}] + bn_offset[v_co]"),
            ("output", f"T.max(shifted[{at}], T.float32(0.0))")):
        program.block(name, axes, f"{name}[{at}] = {value}")
    return program, 2.0 * out * out * cout * kernel * kernel * cin


CLASSES = {
    "c1d": [convolution(1, [256], 64, 128, 3, 2, 1),
            convolution(1, [64], 256, 256, 5, 1, 2)],
    "c2d": [convolution(2, [224, 224], 3, 64, 7, 2, 3),
            convolution(2, [14, 14], 256, 256, 3, 1, 1)],
    "c3d": [convolution(3, [16, 224, 224], 3, 64, 7, 2, 3),
            convolution(3, [16, 14, 14], 256, 256, 3, 1, 1)],
    "gmm": [matmul(128), matmul(512)],
    "grp": [convolution(2, [56, 56], 64, 128, 3, 2, 1, groups=4),
            convolution(2, [14, 14], 256, 256, 3, 1, 1, groups=4)],
    "dil": [convolution(2, [224, 224], 3, 64, 7, 2, 3, dilation=2),
            convolution(2, [14, 14], 256, 256, 3, 1, 1, dilation=2)],
    "dep": [depthwise(112, 32, 3, 1, 1), depthwise(14, 512, 3, 2, 1)],
    "t2d": [transposed(4, 512, 256), transposed(16, 128, 64)],
    "cap": [capsule(16, 32, 32), capsule(16, 8, 16)],
    "nrm": [norm(256), norm(1024)],
    "sfm": [softmax(256), softmax(1024)],
    "cbr": [conv_bn_relu(224, 3, 64, 7, 2, 3),
            conv_bn_relu(28, 128, 256, 1, 2, 0)],
    "tbg": [transposed_matmul(128, 12, 64), transposed_matmul(64, 12, 128)],
}


def entries(entry):
    """The suite's entries, made by `entry` (programs.Entry)."""
    result = []
    for name, shapes in CLASSES.items():
        for number, (program, flops) in enumerate(shapes):
            dims = [d for _, d in program.parameters]
            moved = 4.0 * sum(map(math.prod, dims))
            result.append(entry(
                f"ansor_{name}_{number}", program.text(), "main", dims, flops,
                moved, {"kind": ""}, peers="tvm"))
    return result

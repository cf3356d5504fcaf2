"""The programs of the float32 suite, as TVMScript text.

ENTRIES maps a name to an Entry: the program, its function's name, the shapes of
its parameters (the last is the output), the work, and the description for
peers (`spec`).
"""

import dataclasses
import math

import ansor


@dataclasses.dataclass
class Entry:
    name: str
    text: str
    function: str
    shapes: list          # of the parameters; the last one is the output
    flops: float          # multiply-adds count twice
    bytes: float          # of inputs read and outputs written once
    spec: dict            # "kind" and its dimensions, for peers
    weights: tuple = ()   # constant parameters: layout_free_buffers
    # "library": compared with oneDNN and others (suite/run.py); "tvm": with
    # MetaSchedule (vs_tvm.py).
    peers: str = "library"

    @property
    def symbol(self):
        """A function called main is exported as tilefarm_main."""
        return "tilefarm_main" if self.function == "main" else self.function


def _shape(dims):
    return "(" + ", ".join(str(d) for d in dims) + ("," if len(dims) == 1
                                                    else "") + ")"


def _module(function, parameters, body, weights=()):
    lines = ["from tvm.script import ir as I",
             "from tvm.script import tir as T", "", "", "@I.ir_module",
             "class Module:", "    @T.prim_func", f"    def {function}("]
    lines += [f'        {name}: T.Buffer({_shape(dims)}, "float32"),'
              for name, dims in parameters]
    constant = (f', "layout_free_buffers": {list(weights)}' if weights
                else "")
    lines += ["    ):",
              f'        T.func_attr({{"tir.noalias": True{constant}}})']
    lines += ["        " + line for line in body]
    return "\n".join(lines) + "\n"


def _alloc(name, dims):
    return f'{name} = T.alloc_buffer({_shape(dims)}, "float32")'


def _block(name, axes, statements, init=None):
    """axes: [(variable, extent, "S" or "R")]."""
    loops = ", ".join(v for v, _, _ in axes)
    extents = ", ".join(str(e) for _, e, _ in axes)
    kinds = "".join(k for _, _, k in axes)
    variables = ", ".join("v" + v for v, _, _ in axes)
    grid = (f"for {loops} in T.grid({extents}):" if len(axes) > 1
            else f"for {loops} in range({extents}):")
    lines = [grid, f'    with T.block("{name}"):',
             f'        {variables} = T.axis.remap("{kinds}", [{loops}])']
    if init:
        lines += ["        with T.init():", "            " + init]
    return lines + ["        " + s for s in statements]


def _elements(shapes):
    return sum(math.prod(s) for s in shapes)


def gemm(name, m, n, k, batch=0, bias=False, activation="", transposed=False):
    lead = [("b", batch, "S")] if batch else []
    at = "vb, " if batch else ""
    dims = lambda *d: ([batch] if batch else []) + list(d)  # noqa: E731
    b_dims = dims(n, k) if transposed else dims(k, n)
    b_at = f"B[{at}vj, vk]" if transposed else f"B[{at}vk, vj]"
    parameters = [("A", dims(m, k)), ("B", b_dims)]
    if bias:
        parameters.append(("bias", [n]))
    parameters.append(("C", dims(m, n)))
    fused = bias or activation
    out = "Y" if fused else "C"
    body = [_alloc("Y", dims(m, n))] if fused else []
    body += _block("matmul", lead + [("i", m, "S"), ("j", n, "S"),
                                     ("k", k, "R")],
                   [f"{out}[{at}vi, vj] = {out}[{at}vi, vj] + "
                    f"A[{at}vi, vk] * {b_at}"],
                   f"{out}[{at}vi, vj] = T.float32(0)")
    axes = lead + [("i", m, "S"), ("j", n, "S")]
    value = f"Y[{at}vi, vj]"
    if bias:
        target = "Z" if activation else "C"
        if activation:
            body.insert(1, _alloc("Z", dims(m, n)))
        body += _block("bias", axes,
                       [f"{target}[{at}vi, vj] = {value} + bias[vj]"])
        value = f"Z[{at}vi, vj]"
    if activation == "relu":
        body += _block("relu", axes,
                       [f"C[{at}vi, vj] = T.max({value}, T.float32(0))"])
    elif activation == "gelu":
        body += _block("gelu", axes, [
            f"C[{at}vi, vj] = {value} * (T.float32(0.5) + T.float32(0.5) * "
            f"T.erf({value} * T.float32(0.70710678118654757)))"])
    shapes = [d for _, d in parameters]
    weights = () if batch else (1, 2) if bias else (1,)
    return Entry(name, _module("gemm", parameters, body, weights), "gemm",
                 shapes,
                 2.0 * max(batch, 1) * m * n * k, 4.0 * _elements(shapes),
                 dict(kind="gemm", m=m, n=n, k=k, batch=batch, bias=bias,
                      activation=activation, transposed=transposed), weights)


def conv(name, size, kernel, stride, cin, cout, depthwise=False):
    """NHWC, padding (kernel - 1) / 2, bias and relu."""
    pad = (kernel - 1) // 2
    out = (size + 2 * pad - kernel) // stride + 1
    ps = size + 2 * pad
    weight = [kernel, kernel, cin] + ([] if depthwise else [cout])
    parameters = [("data", [1, size, size, cin]), ("weight", weight),
                  ("bias", [cout]), ("out", [1, out, out, cout])]
    body = []
    source = "data"
    if pad:
        source = "padded"
        body += [_alloc("padded", [1, ps, ps, cin])]
    body += [_alloc("sum", [1, out, out, cout]),
             _alloc("biased", [1, out, out, cout])]
    if pad:
        body += _block("padded", [("n", 1, "S"), ("h", ps, "S"),
                                  ("w", ps, "S"), ("c", cin, "S")], [
            "padded[vn, vh, vw, vc] = T.if_then_else(",
            f"    {pad} <= vh and vh < {size + pad} and "
            f"{pad} <= vw and vw < {size + pad},",
            f"    data[vn, vh - {pad}, vw - {pad}, vc],",
            "    T.float32(0),", ")"])
    place = lambda v, r: (f"v{v} * {stride} + v{r}" if stride > 1  # noqa: E731
                          else f"v{v} + v{r}")
    axes = [("n", 1, "S"), ("h", out, "S"), ("w", out, "S"),
            ("co", cout, "S"), ("rh", kernel, "R"), ("rw", kernel, "R")]
    if depthwise:
        operands = (f"{source}[vn, {place('h', 'rh')}, {place('w', 'rw')}, "
                    "vco] * weight[vrh, vrw, vco]")
    else:
        axes.append(("rc", cin, "R"))
        operands = (f"{source}[vn, {place('h', 'rh')}, {place('w', 'rw')}, "
                    "vrc] * weight[vrh, vrw, vrc, vco]")
    body += _block("conv", axes, [
        f"sum[vn, vh, vw, vco] = sum[vn, vh, vw, vco] + {operands}"],
        "sum[vn, vh, vw, vco] = T.float32(0)")
    spatial = [("n", 1, "S"), ("h", out, "S"), ("w", out, "S"),
               ("co", cout, "S")]
    body += _block("biased", spatial, [
        "biased[vn, vh, vw, vco] = sum[vn, vh, vw, vco] + bias[vco]"])
    body += _block("relu", spatial, [
        "out[vn, vh, vw, vco] = T.max(biased[vn, vh, vw, vco], T.float32(0))"])
    shapes = [d for _, d in parameters]
    weights = (1, 2)
    return Entry(name, _module("conv2d", parameters, body, weights), "conv2d",
                 shapes,
                 2.0 * out * out * cout * kernel * kernel *
                 (1 if depthwise else cin),
                 4.0 * _elements(shapes),
                 dict(kind="conv", size=size, kernel=kernel, stride=stride,
                      pad=pad, cin=cin, cout=cout, out=out,
                      depthwise=depthwise), weights)


def softmax(name, rows, columns):
    row = [("i", rows, "S")]
    both = row + [("j", columns, "S")]
    reduce_ = row + [("j", columns, "R")]
    parameters = [("A", [rows, columns]), ("B", [rows, columns])]
    body = [_alloc("largest", [rows]), _alloc("e", [rows, columns]),
            _alloc("total", [rows])]
    body += _block("largest", reduce_,
                   ["largest[vi] = T.max(largest[vi], A[vi, vj])"],
                   "largest[vi] = T.float32(-3.4028234663852886e+38)")
    body += _block("exp", both, ["e[vi, vj] = T.exp(A[vi, vj] - largest[vi])"])
    body += _block("total", reduce_, ["total[vi] = total[vi] + e[vi, vj]"],
                   "total[vi] = T.float32(0)")
    body += _block("normalise", both, ["B[vi, vj] = e[vi, vj] / total[vi]"])
    shapes = [d for _, d in parameters]
    return Entry(name, _module("softmax", parameters, body), "softmax", shapes,
                 5.0 * rows * columns, 4.0 * _elements(shapes),
                 dict(kind="softmax", rows=rows, columns=columns))


def layer_norm(name, rows, columns):
    both = [("i", rows, "S"), ("j", columns, "S")]
    reduce_ = [("i", rows, "S"), ("j", columns, "R")]
    parameters = [("A", [rows, columns]), ("gamma", [columns]),
                  ("beta", [columns]), ("B", [rows, columns])]
    inverse = f"T.float32({1.0 / columns!r})"
    body = [_alloc("total", [rows]), _alloc("squares", [rows])]
    body += _block("total", reduce_, ["total[vi] = total[vi] + A[vi, vj]"],
                   "total[vi] = T.float32(0)")
    body += _block("squares", reduce_,
                   ["squares[vi] = squares[vi] + A[vi, vj] * A[vi, vj]"],
                   "squares[vi] = T.float32(0)")
    mean = f"total[vi] * {inverse}"
    body += _block("norm", both, [
        f"B[vi, vj] = (A[vi, vj] - {mean}) * T.rsqrt("
        f"squares[vi] * {inverse} - {mean} * ({mean}) + T.float32(1e-05)) "
        "* gamma[vj] + beta[vj]"])
    shapes = [d for _, d in parameters]
    return Entry(name, _module("layer_norm", parameters, body), "layer_norm",
                 shapes, 7.0 * rows * columns, 4.0 * _elements(shapes),
                 dict(kind="layer_norm", rows=rows, columns=columns))


def row_sums(name, rows, columns):
    parameters = [("A", [rows, columns]), ("B", [rows])]
    body = _block("total", [("i", rows, "S"), ("j", columns, "R")],
                  ["B[vi] = B[vi] + A[vi, vj]"], "B[vi] = T.float32(0)")
    shapes = [d for _, d in parameters]
    return Entry(name, _module("row_sums", parameters, body), "row_sums",
                 shapes, 1.0 * rows * columns, 4.0 * _elements(shapes),
                 dict(kind="row_sums", rows=rows, columns=columns))


def transpose(name, rows, columns):
    parameters = [("A", [rows, columns]), ("B", [columns, rows])]
    body = _block("transpose", [("i", columns, "S"), ("j", rows, "S")],
                  ["B[vi, vj] = A[vj, vi]"])
    shapes = [d for _, d in parameters]
    return Entry(name, _module("transpose", parameters, body), "transpose",
                 shapes, 0.0, 4.0 * _elements(shapes),
                 dict(kind="transpose", rows=rows, columns=columns))


def chain(name, count):
    """relu(a * x + b) * y - z, operator by operator."""
    parameters = [("X", [count]), ("Y", [count]), ("Z", [count])]
    axis = [("i", count, "S")]
    body = [_alloc(t, [count]) for t in ("t0", "t1", "t2", "t3")]
    body += _block("scale", axis, ["t0[vi] = X[vi] * T.float32(1.5)"])
    body += _block("shift", axis, ["t1[vi] = t0[vi] + T.float32(0.25)"])
    body += _block("relu", axis, ["t2[vi] = T.max(t1[vi], T.float32(0))"])
    body += _block("times", axis, ["t3[vi] = t2[vi] * Y[vi]"])
    body += _block("minus", axis, ["Z[vi] = t3[vi] - X[vi]"])
    shapes = [d for _, d in parameters]
    return Entry(name, _module("chain", parameters, body), "chain", shapes,
                 5.0 * count, 4.0 * _elements(shapes),
                 dict(kind="chain", count=count))


def max_pool(name, size, channels):
    """3x3, stride 2, padding 1, NHWC."""
    out = (size + 2 - 3) // 2 + 1
    ps = size + 2
    parameters = [("data", [1, size, size, channels]),
                  ("out", [1, out, out, channels])]
    least = "T.float32(-3.4028234663852886e+38)"
    body = [_alloc("padded", [1, ps, ps, channels])]
    body += _block("padded", [("n", 1, "S"), ("h", ps, "S"), ("w", ps, "S"),
                              ("c", channels, "S")], [
        "padded[vn, vh, vw, vc] = T.if_then_else(",
        f"    1 <= vh and vh < {size + 1} and 1 <= vw and vw < {size + 1},",
        "    data[vn, vh - 1, vw - 1, vc],", f"    {least},", ")"])
    body += _block("pool", [("n", 1, "S"), ("h", out, "S"), ("w", out, "S"),
                            ("c", channels, "S"), ("rh", 3, "R"),
                            ("rw", 3, "R")], [
        "out[vn, vh, vw, vc] = T.max(out[vn, vh, vw, vc], "
        "padded[vn, vh * 2 + vrh, vw * 2 + vrw, vc])"],
        f"out[vn, vh, vw, vc] = {least}")
    shapes = [d for _, d in parameters]
    return Entry(name, _module("max_pool", parameters, body), "max_pool",
                 shapes, 9.0 * out * out * channels, 4.0 * _elements(shapes),
                 dict(kind="max_pool", size=size, channels=channels, out=out))


def mean_pool(name, size, channels):
    parameters = [("data", [1, size, size, channels]),
                  ("out", [1, channels])]
    body = [_alloc("total", [1, channels])]
    body += _block("total", [("n", 1, "S"), ("c", channels, "S"),
                             ("rh", size, "R"), ("rw", size, "R")],
                   ["total[vn, vc] = total[vn, vc] + data[vn, vrh, vrw, vc]"],
                   "total[vn, vc] = T.float32(0)")
    body += _block("mean", [("n", 1, "S"), ("c", channels, "S")],
                   ["out[vn, vc] = total[vn, vc] * "
                    f"T.float32({1.0 / size / size!r})"])
    shapes = [d for _, d in parameters]
    return Entry(name, _module("mean_pool", parameters, body), "mean_pool",
                 shapes, 1.0 * size * size * channels,
                 4.0 * _elements(shapes),
                 dict(kind="mean_pool", size=size, channels=channels))


# Name, rows, kernel, stride, channels in and out, whether depthwise.
_CONVOLUTIONS = [
    ("conv7x7s2_3_64_224", 224, 7, 2, 3, 64),
    ("conv1x1_64_256_56", 56, 1, 1, 64, 256),
    ("conv3x3_64_56", 56, 3, 1, 64, 64),
    ("conv3x3_128_28", 28, 3, 1, 128, 128),
    ("conv3x3_256_14", 14, 3, 1, 256, 256),
    ("conv3x3_512_7", 7, 3, 1, 512, 512),
    ("conv1x1s2_1024_2048_14", 14, 1, 2, 1024, 2048),
    ("depthwise_144_56", 56, 3, 1, 144, 144, True),
    ("depthwise_s2_192_28", 28, 3, 2, 192, 192, True),
]

_ALL = [
    gemm("gemm_128", 128, 128, 128),
    gemm("gemm_512", 512, 512, 512),
    gemm("gemm_1024", 1024, 1024, 1024),
    gemm("gemm_2048", 2048, 2048, 2048),
    gemm("gemm_1009", 1009, 1009, 1009),
    gemm("gemv_4096", 1, 4096, 4096),
    gemm("gemm_8x4096", 8, 4096, 4096),
    gemm("dense_gelu", 384, 3072, 768, bias=True, activation="gelu"),
    gemm("dense_bias", 384, 768, 3072, bias=True),
    gemm("attention_qk", 384, 384, 64, batch=12),
    gemm("attention_pv", 384, 64, 384, batch=12),
    gemm("linear_relu", 1, 200, 3072, bias=True, activation="relu",
         transposed=True),
    *(conv(*shape) for shape in _CONVOLUTIONS),
    softmax("softmax_12x384x384", 12 * 384, 384),
    layer_norm("layer_norm_384x768", 384, 768),
    row_sums("row_sums_4096", 4096, 4096),
    transpose("transpose_2048", 2048, 2048),
    chain("chain_16m", 1 << 24),
    max_pool("max_pool_64_112", 112, 64),
    mean_pool("mean_pool_2048_7", 7, 2048),
]
_ALL += ansor.entries(Entry)
# Needs what is above.
import blocked  # noqa: E402

_ALL += [blocked.conv(*shape) for shape in _CONVOLUTIONS]
ENTRIES = {entry.name: entry for entry in _ALL}
# No part of the suite; measured where asked for by name.
BESIDE = {entry.name: entry for entry in [
    softmax("softmax_256x50257", 256, 50257),
    softmax("softmax_64x262144", 64, 262144),
    # Extents whose divisors are few or no multiples of vectors.
    gemm("odd_dense_129x515x771", 129, 515, 771, bias=True, activation="relu",
         transposed=True),
    gemm("odd_gemm_777x333x555", 777, 333, 555),
    gemm("odd_gemm_100x260x130", 100, 260, 130),
    conv("odd_conv3x3_48_80_31", 31, 3, 1, 48, 80),
    conv("odd_conv1x1_116_58_28", 28, 1, 1, 116, 58),
    conv("odd_conv3x3_36_60_19", 19, 3, 1, 36, 60),
]}


def is_wanted(name, only, known=ENTRIES):
    """Whether --only asks for the entry: by its name, or by a part of it that
    is none of the `known` names itself. Nothing asks for all."""
    return not only or any(
        o == name or (o not in known and o in name) for o in only)

"""The programs of the low-precision suite: narrow operands, wide sums.

ENTRIES is as in programs.py; each entry also names the dtypes of its parameters
in `spec`.
"""

import math

from programs import Entry

_BYTES = {"uint8": 1, "int8": 1, "float16": 2, "bfloat16": 2, "int32": 4,
          "float32": 4}


def _parameter(name, dims, dtype):
    return f'        {name}: T.Buffer({tuple(dims)}, "{dtype}"),'


# Parameter 1 is constant in all of them.
_WEIGHTS = (1,)


def _module(function, parameters, body):
    return "\n".join(
        ["from tvm.script import ir as I", "from tvm.script import tir as T",
         "", "", "@I.ir_module", "class Module:", "    @T.prim_func",
         f"    def {function}("]
        + [_parameter(*p) for p in parameters]
        + ["    ):", '        T.func_attr({"tir.noalias": True, '
           f'"layout_free_buffers": {list(_WEIGHTS)}}})']
        + ["        " + line for line in body]) + "\n"


def _entry(name, function, parameters, body, flops, spec):
    spec = dict(spec, dtypes=[dtype for _, _, dtype in parameters])
    size = sum(math.prod(dims) * _BYTES[dtype] for _, dims, dtype in parameters)
    return Entry(name, _module(function, parameters, body), function,
                       [dims for _, dims, _ in parameters], float(flops),
                       float(size), spec, _WEIGHTS)


def gemm(name, size, a, b, total, out=None):
    """Sums of type `total`, stored as `out` where that is another type."""
    out = out or total
    into = "C" if out == total else "Y"
    body = [] if into == "C" else [
        f'Y = T.alloc_buffer(({size}, {size}), "{total}")']
    body += [f"for i, j, k in T.grid({size}, {size}, {size}):",
             '    with T.block("matmul"):',
             '        vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
             "        with T.init():",
             f"            {into}[vi, vj] = T.{total}(0)",
             f"        {into}[vi, vj] = {into}[vi, vj] + "
             f'T.cast(A[vi, vk], "{total}") * T.cast(B[vk, vj], "{total}")']
    if into == "Y":
        body += [f"for i, j in T.grid({size}, {size}):",
                 '    with T.block("store"):',
                 '        vi, vj = T.axis.remap("SS", [i, j])',
                 f'        C[vi, vj] = T.cast(Y[vi, vj], "{out}")']
    parameters = [("A", [size, size], a), ("B", [size, size], b),
                  ("C", [size, size], out)]
    return _entry(name, "gemm", parameters, body, 2 * size ** 3,
                  dict(kind="low_gemm", size=size))


def conv3x3(name, size, cin, cout):
    """Padded by one, NHWC; weights are height, width, in, out."""
    padded = size + 2
    body = [f'padded = T.alloc_buffer((1, {padded}, {padded}, {cin}), "uint8")',
            f"for n, h, w, c in T.grid(1, {padded}, {padded}, {cin}):",
            '    with T.block("padded"):',
            '        vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])',
            "        padded[vn, vh, vw, vc] = T.if_then_else("
            f"1 <= vh and vh < {size + 1} and 1 <= vw and vw < {size + 1}, "
            "data[vn, vh - 1, vw - 1, vc], T.uint8(0))",
            "for n, h, w, co, rh, rw, rc in "
            f"T.grid(1, {size}, {size}, {cout}, 3, 3, {cin}):",
            '    with T.block("conv"):',
            "        vn, vh, vw, vco, vrh, vrw, vrc = "
            'T.axis.remap("SSSSRRR", [n, h, w, co, rh, rw, rc])',
            "        with T.init():",
            "            out[vn, vh, vw, vco] = T.int32(0)",
            "        out[vn, vh, vw, vco] = out[vn, vh, vw, vco] + "
            'T.cast(padded[vn, vh + vrh, vw + vrw, vrc], "int32") * '
            'T.cast(weight[vrh, vrw, vrc, vco], "int32")']
    parameters = [("data", [1, size, size, cin], "uint8"),
                  ("weight", [3, 3, cin, cout], "int8"),
                  ("out", [1, size, size, cout], "int32")]
    return _entry(name, "conv", parameters, body,
                  2 * 9 * cin * cout * size * size,
                  dict(kind="low_conv", size=size, cin=cin, cout=cout))


_ALL = [
    gemm("int8_gemm_1024", 1024, "uint8", "int8", "int32"),
    gemm("int8_gemm_2048", 2048, "uint8", "int8", "int32"),
    gemm("bf16_gemm_1024", 1024, "bfloat16", "bfloat16", "float32"),
    gemm("bf16_gemm_2048", 2048, "bfloat16", "bfloat16", "float32"),
    gemm("f16_gemm_1024", 1024, "float16", "float16", "float32", "float16"),
    gemm("f16_gemm_2048", 2048, "float16", "float16", "float32", "float16"),
    conv3x3("int8_conv3x3_128_28", 28, 128, 128),
]
ENTRIES = {item.name: item for item in _ALL}

#!/usr/bin/env python3
"""Writes programs that gpu_kernels.py times: the shapes of BERT and ResNet-50,
square products, rows, and attention.

  gpu_programs.py DIR [NAME...]

Without names, all; --list prints them. A program's name begins with what it
computes, as gpu_kernels.py says.
"""

import pathlib
import sys

HEAD = '''from tvm.script import tir as T


@T.prim_func
def main({parameters}):
'''


def program(buffers, body):
    parameters = ",\n         ".join(
        f'{name}: T.Buffer(({", ".join(map(str, shape))}'
        f'{"," if len(shape) == 1 else ""}), "{dtype}")'
        for name, shape, dtype in buffers)
    return HEAD.format(parameters=parameters) + body


def indented(text, by=4):
    return "".join(" " * by + line if line.strip() else line
                   for line in text.splitlines(keepends=True))


def nest(name, kinds, extents, statements, init=None):
    """A block over loops of these extents, its variables v0, v1, ..."""
    loops = ", ".join(f"i{n}" for n in range(len(extents)))
    sizes = ", ".join(map(str, extents))
    head = f"for {loops} in T.grid({sizes}):\n" if len(extents) > 1 else \
        f"for {loops} in range({sizes}):\n"
    variables = ", ".join(f"v{n}" for n in range(len(extents)))
    remap = f"{variables} = T.axis.remap(\"{kinds}\", [{loops}])\n"
    text = head + f"    with T.block(\"{name}\"):\n" + indented(remap, 8)
    if init:
        text += "        with T.init():\n" + f"            {init}\n"
    return text + indented(statements + "\n", 8)


def cast(value, frm, to):
    return value if frm == to else f'T.Cast("{to}", {value})'


def sums_in(dtype):
    return "int32" if dtype == "int8" else "float32"


def zero(dtype):
    return f"T.{dtype}(0)"


def matmul(m, n, k, dtype, transposed=False):
    sums = sums_in(dtype)
    out = "int32" if dtype == "int8" else dtype
    b = (n, k) if transposed else (k, n)
    buffers = [("A", (m, k), dtype), ("B", b, dtype), ("C", (m, n), out)]
    b_at = "B[v1, v2]" if transposed else "B[v2, v1]"
    target = "C" if sums == out else "S"
    text = "" if sums == out else f'S = T.alloc_buffer(({m}, {n}), "{sums}")\n'
    text += nest("product", "SSR", (m, n, k),
                 f"{target}[v0, v1] = {target}[v0, v1] + "
                 f"{cast('A[v0, v2]', dtype, sums)} * {cast(b_at, dtype, sums)}",
                 f"{target}[v0, v1] = {zero(sums)}")
    if sums != out:
        text += nest("round", "SS", (m, n),
                     f"C[v0, v1] = {cast('S[v0, v1]', sums, out)}")
    return program(buffers, indented(text))


def dense_gelu(m, n, k, dtype):
    buffers = [("A", (m, k), dtype), ("B", (k, n), dtype),
               ("bias", (n,), "float32"), ("C", (m, n), dtype)]
    text = f'S = T.alloc_buffer(({m}, {n}), "float32")\n'
    text += f'D = T.alloc_buffer(({m}, {n}), "float32")\n'
    text += nest("product", "SSR", (m, n, k),
                 "S[v0, v1] = S[v0, v1] + "
                 f"{cast('A[v0, v2]', dtype, 'float32')} * "
                 f"{cast('B[v2, v1]', dtype, 'float32')}",
                 "S[v0, v1] = T.float32(0)")
    text += nest("add", "SS", (m, n), "D[v0, v1] = S[v0, v1] + bias[v1]")
    gelu = ("D[v0, v1] * T.float32(0.5) * (T.float32(1) + "
            "T.erf(D[v0, v1] * T.float32(0.70710678118654757)))")
    text += nest("gelu", "SS", (m, n),
                 f"C[v0, v1] = {cast(gelu, 'float32', dtype)}")
    return program(buffers, indented(text))


def softmax(rows, columns):
    buffers = [("A", (rows, columns), "float32"),
               ("B", (rows, columns), "float32")]
    text = f'M = T.alloc_buffer(({rows},), "float32")\n'
    text += f'E = T.alloc_buffer(({rows}, {columns}), "float32")\n'
    text += f'D = T.alloc_buffer(({rows},), "float32")\n'
    text += nest("max", "SR", (rows, columns), "M[v0] = T.max(M[v0], A[v0, v1])",
                 "M[v0] = T.float32(-3.4028234663852886e+38)")
    text += nest("exp", "SS", (rows, columns),
                 "E[v0, v1] = T.exp(A[v0, v1] - M[v0])")
    text += nest("sum", "SR", (rows, columns), "D[v0] = D[v0] + E[v0, v1]",
                 "D[v0] = T.float32(0)")
    text += nest("divide", "SS", (rows, columns), "B[v0, v1] = E[v0, v1] / D[v0]")
    return program(buffers, indented(text))


def layer_norm(rows, columns):
    buffers = [("A", (rows, columns), "float32"),
               ("B", (rows, columns), "float32")]
    text = f'S = T.alloc_buffer(({rows},), "float32")\n'
    text += f'Q = T.alloc_buffer(({rows},), "float32")\n'
    text += nest("sum", "SR", (rows, columns), "S[v0] = S[v0] + A[v0, v1]",
                 "S[v0] = T.float32(0)")
    mean = f"S[v0] / T.float32({columns})"
    text += nest("squares", "SR", (rows, columns),
                 f"Q[v0] = Q[v0] + (A[v0, v1] - {mean}) * (A[v0, v1] - {mean})",
                 "Q[v0] = T.float32(0)")
    text += nest("norm", "SS", (rows, columns),
                 f"B[v0, v1] = (A[v0, v1] - {mean}) / "
                 f"T.sqrt(Q[v0] / T.float32({columns}) + T.float32(1e-05))")
    return program(buffers, indented(text))


def row_sums(rows, columns):
    buffers = [("A", (rows, columns), "float32"), ("B", (rows,), "float32")]
    return program(buffers, indented(nest(
        "sum", "SR", (rows, columns), "B[v0] = B[v0] + A[v0, v1]",
        "B[v0] = T.float32(0)")))


def add_relu(rows, columns):
    shape = (rows, columns)
    buffers = [("A", shape, "float32"), ("B", shape, "float32"),
               ("C", shape, "float32")]
    text = f'D = T.alloc_buffer({shape}, "float32")\n'
    text += nest("add", "SS", shape, "D[v0, v1] = A[v0, v1] + B[v0, v1]")
    text += nest("relu", "SS", shape, "C[v0, v1] = T.max(D[v0, v1], T.float32(0))")
    return program(buffers, indented(text))


def transpose(rows, columns):
    buffers = [("A", (rows, columns), "float32"),
               ("B", (columns, rows), "float32")]
    return program(buffers, indented(nest(
        "transpose", "SS", (columns, rows), "B[v0, v1] = A[v1, v0]")))


def attention(heads, positions, size, dtype):
    """softmax(Q K' / sqrt(size)) V, the scores in float32."""
    shape, scores = (heads, positions, size), (heads, positions, positions)
    buffers = [(name, shape, dtype) for name in "QKVO"]
    out = "O" if dtype == "float32" else "R"
    text = "".join(f'{name} = T.alloc_buffer({of}, "float32")\n'
                   for name, of in (("S", scores), ("M", (heads, positions)),
                                    ("E", scores), ("D", (heads, positions))))
    text += f'P = T.alloc_buffer({scores}, "{dtype}")\n'
    if out != "O":
        text += f'R = T.alloc_buffer({shape}, "float32")\n'
    text += nest("S", "SSSR", (heads, positions, positions, size),
                 "S[v0, v1, v2] = S[v0, v1, v2] + "
                 f"{cast('Q[v0, v1, v3]', dtype, 'float32')} * "
                 f"{cast('K[v0, v2, v3]', dtype, 'float32')}",
                 "S[v0, v1, v2] = T.float32(0)")
    text += nest("M", "SSR", scores, "M[v0, v1] = T.max(M[v0, v1], S[v0, v1, v2])",
                 "M[v0, v1] = T.float32(-3.4028234663852886e+38)")
    text += nest("E", "SSS", scores, "E[v0, v1, v2] = T.exp("
                 f"(S[v0, v1, v2] - M[v0, v1]) * T.float32({size ** -0.5}))")
    text += nest("D", "SSR", scores, "D[v0, v1] = D[v0, v1] + E[v0, v1, v2]",
                 "D[v0, v1] = T.float32(0)")
    text += nest("P", "SSS", scores, "P[v0, v1, v2] = " + cast(
        "E[v0, v1, v2] / D[v0, v1]", "float32", dtype))
    text += nest("O", "SSSR", (heads, positions, size, positions),
                 f"{out}[v0, v1, v2] = {out}[v0, v1, v2] + "
                 f"{cast('P[v0, v1, v3]', dtype, 'float32')} * "
                 f"{cast('V[v0, v3, v2]', dtype, 'float32')}",
                 f"{out}[v0, v1, v2] = T.float32(0)")
    if out != "O":
        text += nest("round", "SSS", shape, "O[v0, v1, v2] = " + cast(
            "R[v0, v1, v2]", "float32", dtype))
    return program(buffers, indented(text))


def convolution(batch, channels, size, kernels, kernel, stride, dtype,
                channels_last=False):
    """Padded so that stride 1 keeps the size."""
    pad, out = kernel // 2, (size + 2 * (kernel // 2) - kernel) // stride + 1
    padded = size + 2 * pad
    sums = sums_in(dtype)

    def order(n, c, h, w):
        return (n, h, w, c) if channels_last else (n, c, h, w)

    def at(name, *indices):
        return f"{name}[{', '.join(indices)}]"

    buffers = [("X", order(batch, channels, size, size), dtype),
               ("W", order(kernels, channels, kernel, kernel), dtype),
               ("Y", order(batch, kernels, out, out), dtype)]
    text, read = "", "X"
    if pad:
        shape = order(batch, channels, padded, padded)
        text += f'Z = T.alloc_buffer({shape}, "{dtype}")\n'
        h, w = ("v1", "v2") if channels_last else ("v2", "v3")
        source = [f"{v} - {pad}" if v in (h, w) else v
                  for v in ("v0", "v1", "v2", "v3")]
        inside = " and ".join(f"{pad} <= {v} and {v} < {size + pad}"
                              for v in (h, w))
        text += nest("pad", "SSSS", shape,
                     f"{at('Z', 'v0', 'v1', 'v2', 'v3')} = T.if_then_else("
                     f"{inside}, {at('X', *source)}, T.{dtype}(0))")
        read = "Z"
    target = "Y" if sums == dtype else "S"
    shape = order(batch, kernels, out, out)
    if target == "S":
        text += f'S = T.alloc_buffer({shape}, "{sums}")\n'
    n, c, h, w = ("v0", "v3", "v1", "v2") if channels_last else (
        "v0", "v1", "v2", "v3")
    # Reduced: channels, rows, columns; channels last, those innermost.
    rc, rh, rw = ("v6", "v4", "v5") if channels_last else ("v4", "v5", "v6")
    step = f" * {stride}" if stride > 1 else ""
    x = at(read, *order(n, rc, f"{h}{step} + {rh}", f"{w}{step} + {rw}"))
    weight = at("W", *order(c, rc, rh, rw))
    sizes = dict(zip((rc, rh, rw), (channels, kernel, kernel)))
    extents = (*shape, sizes["v4"], sizes["v5"], sizes["v6"])
    result = at(target, "v0", "v1", "v2", "v3")
    text += nest("conv", "SSSSRRR", extents,
                 f"{result} = {result} + {cast(x, dtype, sums)} * "
                 f"{cast(weight, dtype, sums)}", f"{result} = {zero(sums)}")
    if target == "S":
        text += nest("round", "SSSS", shape, f"{at('Y', 'v0', 'v1', 'v2', 'v3')}"
                     f" = {cast(result, sums, dtype)}")
    return program(buffers, indented(text))


PROGRAMS = {
    **{f"mm{d[0]}{b}n{n}": (matmul, n, n, n, d + b)
       for n in (1024, 2048, 4096, 8192)
       for d, b in (("float", "16"), ("bfloat", "16"), ("float", "32"))},
    **{f"mmi8n{n}_nt": (matmul, n, n, n, "int8", True)
       for n in (1024, 2048, 4096, 8192)},
    "mmb16bert": (matmul, 512, 3072, 768, "bfloat16"),
    "mmb16bert2": (matmul, 512, 768, 3072, "bfloat16"),
    "mmb16n4104": (matmul, 4104, 4104, 4104, "bfloat16"),
    "gelub16bert": (dense_gelu, 512, 3072, 768, "bfloat16"),
    "gelub16n4096": (dense_gelu, 4096, 4096, 4096, "bfloat16"),
    "softmax4096": (softmax, 4096, 4096),
    "softmax1024": (softmax, 8192, 1024),
    "layernorm4096": (layer_norm, 4096, 4096),
    "layernorm1024": (layer_norm, 8192, 1024),
    "rowsum4096": (row_sums, 4096, 4096),
    "rowsum100000": (row_sums, 64, 100000),
    "addrelu8192": (add_relu, 8192, 8192),
    "transpose4096": (transpose, 4096, 4096),
    "attentionf32n512": (attention, 96, 512, 64, "float32"),
    "attentionf16n512": (attention, 96, 512, 64, "float16"),
    "attentionf16n2048": (attention, 32, 2048, 64, "float16"),
    "convf32c64": (convolution, 16, 64, 56, 64, 3, 1, "float32"),
    "convf32c256": (convolution, 16, 256, 14, 256, 3, 1, "float32"),
    "convf32c128s2": (convolution, 16, 128, 56, 128, 3, 2, "float32"),
    "convf32c3k7": (convolution, 16, 3, 224, 64, 7, 2, "float32"),
    "convf32c256k1": (convolution, 16, 256, 56, 64, 1, 1, "float32"),
    "nhwcf32c64": (convolution, 16, 64, 56, 64, 3, 1, "float32", True),
    "nhwcf16c64": (convolution, 16, 64, 56, 64, 3, 1, "float16", True),
    "nhwcf16c256": (convolution, 16, 256, 14, 256, 3, 1, "float16", True),
    "nhwcf16c128s2": (convolution, 16, 128, 56, 128, 3, 2, "float16", True),
    "nhwcf16c256k1": (convolution, 16, 256, 56, 64, 1, 1, "float16", True),
    "nhwcf16n1c256": (convolution, 1, 256, 14, 256, 3, 1, "float16", True),
    "convf16c256": (convolution, 16, 256, 14, 256, 3, 1, "float16"),
}


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(PROGRAMS))
        return
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or PROGRAMS:
        make, *arguments = PROGRAMS[name]
        (folder / f"{name}.py").write_text(make(*arguments))


if __name__ == "__main__":
    main()

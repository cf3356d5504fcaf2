"""Attention that keeps scores and probabilities in registers, as kernels whose
threads compute whole rows (ir::kRowQuads).

    row_quads_kernels.py KEY=VALUE ...   prints the kernel, for example n=64 c=32
"""

import collections
import sys

# Rows and keys `n` of `d` elements; `warps` of a block, each of 8 * `tall`
# rows; `c` columns at a time, in `stages` copies. `mask`: "", "tensor",
# "causal". `scores`: where the exponentials are, "kept" or "inlined".
# `columns`: of elementwise loops, "one" loop or "split". `terms`: the loop of an
# instruction's terms is "inside" of the others or "outside". `queries`: the
# products read "shared" memory or "registers".
Kernel = collections.namedtuple(
    "Kernel",
    "n d warps tall c stages dtype mask scores columns terms queries",
    defaults=(64, 64, 2, 2, 32, 1, "float16", "", "kept", "one", "inside",
              "shared"))

LOWEST = "T.float32(-3.4028234663852886e+38)"


class Text:
    """Lines of a program, which `add` indents."""

    def __init__(self):
        self.lines = []

    def add(self, indent, text):
        self.lines += [" " * indent + line for line in text.split("\n")]

    def block(self, indent, loops, name, axes, body, init=()):
        """A block in `loops`, pairs of a variable and its loop."""
        for var, loop in loops:
            self.add(indent, f"for {var} in {loop}:")
            indent += 4
        self.add(indent, f'with T.block("{name}"):')
        self.add(indent + 4, "\n".join(axes))
        if init:
            self.add(indent + 4, "with T.init():")
            self.add(indent + 8, "\n".join(init))
        self.add(indent + 4, "\n".join(body))


def program(k):
    rows = k.warps * k.tall * 8
    blocks, chunks = k.n // rows, k.n // k.c
    scale = f"T.float32({1 / k.d ** 0.5})"
    row = f"vi = T.axis.spatial({k.n}, b * {rows} + y * {k.tall * 8} + t * 8 + x)"
    t = ("t", f"range({k.tall})")
    split = k.columns == "split"
    columns = ([("j0", f"range({k.c // 8})"), ("j1", "range(8)")] if split else
               [("j", f"range({k.c})")])
    j = "j0 * 8 + j1" if split else "j"
    column = f"vj = T.axis.spatial({k.n}, c * {k.c} + {j})"
    columns_of_chunk = [f"vc = T.axis.spatial({chunks}, c)",
                        f"vj = T.axis.reduce({k.c}, {j})"]
    chunk = f"vc = T.axis.reduce({chunks}, c)"
    depth = [("d0", f"range({k.d // 8})"), ("d1", "range(8)")] if split else [
        ("d", f"range({k.d})")]
    # The terms of an instruction, which of a row are 32 bytes.
    step, unit = (8, "mma.3xtf32") if k.dtype == "float32" else (16, "mma")
    vector = step // 2
    element = f"vd = T.axis.spatial({k.d}, {'d0 * 8 + d1' if split else 'd'})"

    out = Text()

    def fetch(indent, name, source, first, count):
        per_thread = count * k.d // (k.warps * 8 * vector)
        place = (f"i * {k.warps * 8 * vector} + y1 * {8 * vector} + "
                 f"x1 * {vector} + v")
        out.block(
            indent,
            [("i", f"range({per_thread})"),
             ("y1", f'T.thread_binding({k.warps}, thread="threadIdx.y")'),
             ("x1", 'T.thread_binding(8, thread="threadIdx.x")'),
             ("v", f"T.vectorized({vector})")], name,
            [f"vi = T.axis.spatial({k.n}, {first} + ({place}) // {k.d})",
             f"vk = T.axis.spatial({k.d}, ({place}) % {k.d})",
             f"T.reads({source}[vi, vk])", f"T.writes({name}[vi, vk])",
             f'T.block_attr({{"buffer_dim_align": [[0, 0, {step}, {vector}]]}})'],
            [f"{name}[vi, vk] = {source}[vi, vk]"])

    def cast(value):
        return (value if k.dtype == "float32" else
                f'T.Cast("float32", {value})')

    def rounded(value):
        return (value if k.dtype == "float32" else
                f'T.Cast("{k.dtype}", {value})')

    def product(indent, name, term, terms, column_loop, axes, sums, a, b):
        nest = [t, column_loop]
        inner = (f"{term}1", f"T.serial({step}, annotations="
                 f'{{"tilefarm.warp_matrix": "{unit}"}})')
        nest = ([(f"{term}0", f"range({terms // step})")] +
                ([inner] + nest if k.terms == "outside" else nest + [inner]))
        out.block(indent, nest, name, axes,
                  [f"{sums} = {sums} + {cast(a)} * {cast(b)}"], [f"{sums} = T.float32(0)"])

    n2 = f"({k.n}, {k.n})"
    mask = f', B: T.Buffer({n2}, "float16")' if k.mask == "tensor" else ""
    matrix = f'T.Buffer(({k.n}, {k.d}), "{k.dtype}")'
    out.add(0, f"""@T.prim_func
def main(Q: {matrix}, K: {matrix}, V: {matrix}{mask}, A: {matrix}):
    T.func_attr({{"global_symbol": "main", "tir.noalias": True}})""")
    for name in ("Qs", "Ks", "Vs"):
        out.add(4, f'{name} = T.alloc_buffer(({k.n}, {k.d}), "{k.dtype}", '
                'scope="shared")')
    for name, shape, dtype in (
            ("S", n2, "float32"), ("X", n2, "float32"), ("E", n2, "float32"),
            ("P", n2, k.dtype), ("Mp", f"({k.n}, {chunks})", "float32"),
            ("M", f"({k.n},)", "float32"), ("F", f"({k.n},)", "float32"),
            ("Dp", f"({k.n}, {chunks})", "float32"),
            ("D", f"({k.n},)", "float32"),
            ("Op", f"({k.n}, {chunks}, {k.d})", "float32"),
            ("O", f"({k.n}, {k.d})", "float32"),
            ("Qr", f"({k.n}, {k.d})", k.dtype)):
        if (name == "X" and not k.mask or
                name == "E" and k.scores != "kept" or
                name == "Qr" and k.queries != "registers"):
            continue
        out.add(4, f'{name} = T.alloc_buffer({shape}, "{dtype}", scope="local")')
    out.add(4, f"""for b in T.thread_binding({blocks}, thread="blockIdx.x"):
    for y in T.thread_binding({k.warps}, thread="threadIdx.y"):
        for x in T.thread_binding(8, thread="threadIdx.x", annotations={{"tilefarm.row_quads": 1}}):""")
    fetch(16, "Qs", "Q", f"b * {rows}", rows)
    queries = "Qs"
    if k.queries == "registers":
        queries = "Qr"
        out.block(16, [t] + depth, "Qr", [row, element],
                  ["Qr[vi, vd] = Qs[vi, vd]"])
    stages = f'{{"tilefarm.shared_stages": {k.stages}}}'
    out.add(16, f"for c in T.serial({chunks}, annotations={stages}):")
    fetch(20, "Ks", "K", f"c * {k.c}", k.c)
    fetch(20, "Vs", "V", f"c * {k.c}", k.c)
    product(20, "S", "k", k.d, ("j", f"range({k.c})"),
            [row, f"vj = T.axis.spatial({k.n}, c * {k.c} + j)",
             f"vk = T.axis.reduce({k.d}, k0 * {step} + k1)"], "S[vi, vj]",
            f"{queries}[vi, vk]", "Ks[vj, vk]")
    scores = "S"
    if k.mask:
        scores = "X"
        out.block(20, [t] + columns, "X", [row, column], [
            f'X[vi, vj] = S[vi, vj] * {scale} + T.Cast("float32", B[vi, vj])'
            if k.mask == "tensor" else
            f"X[vi, vj] = T.if_then_else(vj <= vi, S[vi, vj] * {scale}, {LOWEST})"])
        scale = "T.float32(1)"
    in_chunk = f"vc * {k.c} + vj"
    out.block(20, [t] + columns, "Mp", [row] + columns_of_chunk,
              [f"Mp[vi, vc] = T.max(Mp[vi, vc], {scores}[vi, {in_chunk}])"],
              [f"Mp[vi, vc] = {LOWEST}"])
    out.block(20, [t], "F", [row, chunk],
              [f"F[vi] = T.exp((M[vi] - T.max(M[vi], Mp[vi, vc])) * {scale})",
               "M[vi] = T.max(M[vi], Mp[vi, vc])"],
              [f"M[vi] = {LOWEST}", "F[vi] = T.float32(0)"])

    def exponential(at):
        return f"T.exp(({scores}[vi, {at}] - M[vi]) * {scale})"

    if k.scores == "kept":
        out.block(20, [t] + columns, "E", [row, column],
                  [f"E[vi, vj] = {exponential('vj')}"])
    value = (lambda at: f"E[vi, {at}]") if k.scores == "kept" else exponential
    out.block(20, [t] + columns, "Dp", [row] + columns_of_chunk,
              [f"Dp[vi, vc] = Dp[vi, vc] + {value(in_chunk)}"],
              ["Dp[vi, vc] = T.float32(0)"])
    out.block(20, [t], "D", [row, chunk],
              ["D[vi] = D[vi] * F[vi] + Dp[vi, vc]"], ["D[vi] = T.float32(0)"])
    out.block(20, [t] + columns, "P", [row, column],
              [f"P[vi, vj] = {rounded(value('vj'))}"])
    product(20, "Op", "j", k.c, ("d", f"range({k.d})"),
            [row, f"vc = T.axis.spatial({chunks}, c)",
             f"vd = T.axis.spatial({k.d}, d)",
             f"vj = T.axis.reduce({k.c}, j0 * {step} + j1)"], "Op[vi, vc, vd]",
            f"P[vi, {in_chunk}]", f"Vs[{in_chunk}, vd]")
    out.block(20, [t] + depth, "O", [row, chunk, element],
              ["O[vi, vd] = O[vi, vd] * F[vi] + Op[vi, vc, vd]"],
              ["O[vi, vd] = T.float32(0)"])
    out.block(16, [t] + depth, "A", [row, element],
              [f"A[vi, vd] = {rounded('O[vi, vd] / D[vi]')}"])
    return "\n".join(out.lines) + "\n"


def parse(arguments):
    values = dict(argument.split("=") for argument in arguments)
    return Kernel(**{key: int(value) if value.isdigit() else value
                     for key, value in values.items()})


if __name__ == "__main__":
    print(program(parse(sys.argv[1:])), end="")

"""Programs and traces of matrix products on the tensor cores of warps.

    mma_traces.py FOLDER [NAME ...]   writes NAME.py and NAME.tr

A name is mmSIZE_TYPE_LAYOUT_BMxBNxKT_WMxWN_sSTAGES, for example
mm256_f16_nn_128x128x32_64x32_s3: blocks of BM x BN sums, whose warps have WM x
WN each; KT terms at a time; STAGES copies of the shared buffers. SIZE may be
MxNxK. Types: f16, bf16, f32 (3xTF32), s8, u8.
"""

import os
import re
import sys

# Name: (operands, sums, bytes of an operand, terms of an instruction,
# annotation).
TYPES = {
    "f16": ("float16", "float32", 2, 16, "mma"),
    "bf16": ("bfloat16", "float32", 2, 16, "mma"),
    "f32": ("float32", "float32", 4, 8, "mma.3xtf32"),
    "s8": ("int8", "int32", 1, 32, "mma"),
    "u8": ("uint8", "int32", 1, 32, "mma"),
}


def parse(name):
    match = re.fullmatch(
        r"mm(\d+(?:x\d+x\d+)?)_(\w+)_(nn|nt)_(\d+)x(\d+)x(\d+)_(\d+)x(\d+)"
        r"_s(\d+)", name)
    if not match:
        raise ValueError(f"{name} is no name of a variant")
    size = [int(x) for x in match[1].split("x")]
    if len(size) == 1:
        size *= 3
    return size, match[2], match[3], [int(x) for x in match.groups()[3:]]


def program(size, kind, layout):
    m, n, k = size
    operand, total = TYPES[kind][:2]
    b_shape, b = ((n, k), "B[vj, vk]") if layout == "nt" else (
        (k, n), "B[vk, vj]")
    a = "A[vi, vk]"
    if operand != total:
        a, b = (f"T.Cast(\"{total}\", {x})" for x in (a, b))
    return f"""@T.prim_func
def main(A: T.Buffer({(m, k)}, "{operand}"), B: T.Buffer({b_shape}, "{operand}"), C: T.Buffer({(m, n)}, "{total}")):
    T.func_attr({{"global_symbol": "main", "tir.noalias": True}})
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.{total}(0)
            C[vi, vj] = C[vi, vj] + {a} * {b}
"""


def copies(block, number, elements, warps, vector, align, row):
    """The threads copy `elements` to shared memory, in vectors."""
    per_thread = elements // (warps * 32 * vector)
    if per_thread * warps * 32 * vector != elements:
        raise ValueError("the threads cannot divide a tile's copy")
    q = f"c{number}"
    lines = [
        f"*{q}, {q}x, {q}y = sch.get_loops(block={block})".replace("*" + q, ", ".join(f"{q}l{i}" for i in range(7))),
        f"{q}f = sch.fuse({q}x, {q}y)",
        f"{q}0, {q}1, {q}2, {q}3 = sch.split(loop={q}f, "
        f"factors=[{per_thread}, {warps}, 32, {vector}])",
        f"sch.unroll(loop={q}0)",
        f'sch.bind(loop={q}1, thread_axis="threadIdx.y")',
        f'sch.bind(loop={q}2, thread_axis="threadIdx.x")',
        f"sch.vectorize(loop={q}3)",
        f"sch.storage_align(block={block}, buffer_index=0, axis={row}, "
        f"factor={align[0]}, offset={align[1]})",
    ]
    return "\n".join(lines) + "\n"


def trace(size, kind, layout, tiles):
    m, n, k = size
    bm, bn, kt, wm, wn, stages = tiles
    _, _, width, depth, value = TYPES[kind]
    if m % bm or n % bn or k % kt or bm % wm or bn % wn or kt % depth:
        raise ValueError("the tiles do not divide the product")
    warps = bm // wm * (bn // wn)
    text = f"""b0 = sch.get_block(name="C", func_name="main")
l1, l2, l3 = sch.get_loops(block=b0)
i0, i1, i2, i3 = sch.split(loop=l1, factors=[{m // bm}, {bm // wm}, {wm // 8}, 8])
j0, j1, j2, j3, j4 = sch.split(loop=l2, factors=[{n // bn}, {bn // wn}, {wn // 8}, 4, 2])
k0, k1, k2 = sch.split(loop=l3, factors=[{k // kt}, {kt // depth}, {depth}])
sch.reorder(i0, j0, i1, j1, i2, j2, i3, j3, k0, k1, j4, k2)
sch.bind(loop=i0, thread_axis="blockIdx.y")
sch.bind(loop=j0, thread_axis="blockIdx.x")
w = sch.fuse(i1, j1)
sch.bind(loop=w, thread_axis="threadIdx.y")
sch.bind(loop=i2, thread_axis="vthread.y")
sch.bind(loop=j2, thread_axis="vthread.x")
t = sch.fuse(i3, j3)
sch.bind(loop=t, thread_axis="threadIdx.x")
sch.annotate(block_or_loop=k2, ann_key="tilefarm.warp_matrix", ann_val="{value}")
b1 = sch.cache_write(block=b0, write_buffer_index=0, storage_scope="local")
sch.reverse_compute_at(block=b1, loop=t, preserve_unit_loops=True)
b2 = sch.cache_read(block=b0, read_buffer_index=0, storage_scope="shared")
sch.compute_at(block=b2, loop=k0, preserve_unit_loops=True)
b3 = sch.cache_read(block=b0, read_buffer_index=1, storage_scope="shared")
sch.compute_at(block=b3, loop=k0, preserve_unit_loops=True)
"""
    # Rows that lie an odd multiple of 16 bytes apart meet different banks; of
    # 32-bit rows across the terms, 8 words past a multiple of 32.
    pad = 16 // width
    along = (2 * pad, pad)
    across = (32, 8) if kind == "f32" and layout == "nn" else along
    text += copies("b2", 0, bm * kt, warps, pad, along, 0)
    text += copies("b3", 1, bn * kt, warps, pad, across, 0)
    text += """w0, w1, w2, w3, w4, w5, w6, w7 = sch.get_loops(block=b1)
sch.vectorize(loop=w7)
"""
    if stages > 1:
        text += f"""sch.annotate(block_or_loop=k0, ann_key="software_pipeline_stage", ann_val=[0, 0, {stages - 1}])
sch.annotate(block_or_loop=k0, ann_key="software_pipeline_order", ann_val=[0, 1, 2])
sch.annotate(block_or_loop=k0, ann_key="software_pipeline_async_stages", ann_val=[0])
"""
    return text


def write(folder, name):
    size, kind, layout, tiles = parse(name)
    for suffix, text in ((".py", program(size, kind, layout)),
                         (".tr", trace(size, kind, layout, tiles))):
        with open(os.path.join(folder, name + suffix), "w") as file:
            file.write(text)


if __name__ == "__main__":
    for variant in sys.argv[2:]:
        write(sys.argv[1], variant)

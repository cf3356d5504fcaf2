"""Programs and traces of matrix products for the matrix units of warpgroups.

  wgmma_traces.py FOLDER M N K [key=value ...]   writes FOLDER/NAME.py and NAME.tr

Keys: dtype (bfloat16, float16, int8), out (default: the operands' type; int32
for int8), layout (nt: B[n, k], nn: B[k, n]), rows, columns, depth (of a tile),
groups (warpgroups along the rows), stages, order (rows of tiles whose columns
are visited together), boxes (1: the copy engine writes the result), blocks (so many
compute all tiles, one after another).
"""
import sys

DEFAULTS = dict(dtype="bfloat16", out=None, layout="nt", rows=128, columns=256,
                depth=None, groups=2, stages=4, order=8, boxes=0, blocks=0)


def settings(**keys):
    c = dict(DEFAULTS, **keys)
    narrow = c["dtype"] in ("int8", "uint8")
    c["sum"] = "int32" if narrow else "float32"
    c["out"] = c["out"] or ("int32" if narrow else c["dtype"])
    c["depth"] = c["depth"] or (128 if narrow else 64)
    return c


def program(m, n, k, c):
    """C = A * B, with sums in a buffer of their own if C has another type."""
    shape, index = ((n, k), "vj, vk") if c["layout"] == "nt" else ((k, n), "vk, vj")
    sums = "C" if c["out"] == c["sum"] else "P"
    lines = [
        "@T.prim_func",
        f'def main(A: T.Buffer(({m}, {k}), "{c["dtype"]}"), '
        f'B: T.Buffer(({shape[0]}, {shape[1]}), "{c["dtype"]}"), '
        f'C: T.Buffer(({m}, {n}), "{c["out"]}")):',
        '    T.func_attr({"global_symbol": "main", "tir.noalias": True})']
    if sums == "P":
        lines.append(f'    P = T.alloc_buffer(({m}, {n}), "{c["sum"]}")')
    lines += [
        f"    for i, j, k in T.grid({m}, {n}, {k}):",
        '        with T.block("P"):',
        '            vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
        "            with T.init():",
        f'                {sums}[vi, vj] = T.{c["sum"]}(0)',
        f'            {sums}[vi, vj] = {sums}[vi, vj] + T.Cast("{c["sum"]}", A[vi, vk])'
        f' * T.Cast("{c["sum"]}", B[{index}])']
    if sums == "P":
        lines += [
            f"    for i, j in T.grid({m}, {n}):",
            '        with T.block("C"):',
            '            vi, vj = T.axis.remap("SS", [i, j])',
            f'            C[vi, vj] = T.Cast("{c["out"]}", P[vi, vj])']
    return "\n".join(lines) + "\n"


def trace(m, n, k, c):
    """Threads have the sums that the matrix unit gives them: of 64 rows 4 warps, 2
    halves and 8 rows, of each 8 columns 4 pairs (compiler/ir/warpgroup_product.h).
    """
    tiles = [-(-m // c["rows"]), -(-n // c["columns"])]
    products = c["rows"] // (64 * c["groups"])
    order = c["order"] if tiles[0] % c["order"] == 0 else 1
    lines = [
        'b0 = sch.get_block(name="P", func_name="main")',
        "l1, l2, l3 = sch.get_loops(block=b0)",
        f"o0, i0, i1, i2, i3, i4, i5 = sch.split(loop=l1, factors="
        f"[{tiles[0] // order}, {order}, {c['groups']}, {products}, 4, 2, 8])",
        f"j0, j1, j2, j3 = sch.split(loop=l2, factors="
        f"[{tiles[1]}, {c['columns'] // 8}, 4, 2])",
        f"k0, k1 = sch.split(loop=l3, factors=[{-(-k // c['depth'])}, {c['depth']}])",
        "sch.reorder(o0, j0, i0, i2, i4, j1, i1, i3, i5, j2, k0, k1, j3)",
        "b = sch.fuse(o0, j0, i0)",
        *([f"p, b = sch.split(loop=b, factors=[{-(-tiles[0] * tiles[1] // c['blocks'])},"
           f" {c['blocks']}])", "sch.reorder(b, p)"] if c["blocks"] else []),
        'sch.bind(loop=b, thread_axis="blockIdx.x")',
        'sch.bind(loop=i2, thread_axis="vthread.z")',
        'sch.bind(loop=i4, thread_axis="vthread.y")',
        'sch.bind(loop=j1, thread_axis="vthread.x")',
        "t = sch.fuse(i1, i3, i5, j2)",
        'sch.bind(loop=t, thread_axis="threadIdx.x")']
    if c["out"] == c["sum"]:
        lines.append('b1 = sch.cache_write(block=b0, write_buffer_index=0, '
                     'storage_scope="local")')
    else:
        lines += ['b1 = sch.get_block(name="C", func_name="main")',
                  'sch.set_scope(block=b0, buffer_index=0, storage_scope="local")']
    lines += [
        "sch.reverse_compute_at(block=b1, loop=t, preserve_unit_loops=True)",
        'b2 = sch.cache_read(block=b0, read_buffer_index=0, storage_scope="shared")',
        "sch.compute_at(block=b2, loop=k0, preserve_unit_loops=True)",
        'b3 = sch.cache_read(block=b0, read_buffer_index=1, storage_scope="shared")',
        "sch.compute_at(block=b3, loop=k0, preserve_unit_loops=True)",
        f"w0, w1, w2, w3, w4, w5, w6{', w7' if c['blocks'] else ''} = sch.get_loops(block=b1)",
        f"sch.vectorize(loop={'w7' if c['blocks'] else 'w6'})",
        'sch.annotate(block_or_loop=k0, ann_key="tilefarm.warpgroup_stages", '
        f"ann_val={c['stages']})"]
    if c["boxes"]:
        lines.append('sch.annotate(block_or_loop=k0, '
                     'ann_key="tilefarm.box_stores", ann_val=1)')
    return "\n".join(lines) + "\n"


def write(folder, name, m, n, k, **keys):
    c = settings(**keys)
    with open(f"{folder}/{name}.py", "w") as f:
        f.write(program(m, n, k, c))
    with open(f"{folder}/{name}.tr", "w") as f:
        f.write(trace(m, n, k, c))
    return c


def main():
    folder, m, n, k = sys.argv[1], *map(int, sys.argv[2:5])
    keys = {}
    for text in sys.argv[5:]:
        key, value = text.split("=")
        keys[key] = int(value) if value.isdigit() else value
    c = settings(**keys)
    name = f"wgmma_{m}_{n}_{k}_{c['dtype']}_{c['layout']}_{c['rows']}x{c['columns']}"
    write(folder, name, m, n, k, **keys)
    print(f"{folder}/{name}")


if __name__ == "__main__":
    main()

# RUN: --stage partition
# Guards that say which terms of a sum an element has are bounds of loops.
@I.ir_module
class Module:
    # In a tile of two rows and four columns the rows' guards make no copies
    # inside: edges, here two of twenty tiles, share one of the reduction, a row
    # after the other. The columns', the widest dimension, cut the taps.
    # CHECK-LABEL: def tiles(
    # CHECK-NEXT: for i0, i1 in T.grid(4, 5):
    # CHECK: if 1 <= i0 * 5 + i1 and i0 * 5 + i1 <= 18:
    # CHECK-NEXT: for r in range(3):
    # CHECK: else:
    # CHECK-NEXT: for i2 in T.unroll(2, annotations={"pragma_unroll_explicit": 0}):
    # CHECK-NEXT: for r in range(T.min(3, 41 - i2 - i1 * 2 - i0 * 10) - T.max(0, 1 - i2 - i1 * 2 - i0 * 10)):
    # CHECK: if 1 <= i0 * 5 + i1 and i0 * 5 + i1 <= 18:
    # CHECK-NEXT: for r, s in T.grid(3, 3):
    # CHECK-NEXT: for i2 in T.unroll(2):
    # CHECK-NEXT: for j1 in T.unroll(4):
    # CHECK-NEXT: for o in T.vectorized(32):
    # CHECK-NEXT: C[i0 * 10 + i1 * 2 + i2,
    @T.prim_func
    def tiles(A: T.Buffer((40, 20), "float32"), W: T.Buffer((3, 3, 32), "float32"), C: T.Buffer((40, 20, 32), "float32")):
        for i0, i1, j0, r, s in T.grid(4, 5, 5, 3, 3):
            for i2 in T.unroll(2):
                for j1 in T.unroll(4):
                    for o in T.vectorized(32):
                        with T.block("C"):
                            vi = T.axis.spatial(40, i0 * 10 + i1 * 2 + i2)
                            vj = T.axis.spatial(20, j0 * 4 + j1)
                            vo, vr, vs = T.axis.remap("SRR", [o, r, s])
                            T.block_attr({"tilefarm.skip_padding": 1})
                            C[vi, vj, vo] = C[vi, vj, vo] + T.if_then_else(1 <= vi + vr and vi + vr < 41 and 1 <= vj + vs and vj + vs < 21, A[vi + vr - 1, vj + vs - 1], T.float32(0)) * W[vr, vs, vo]

    # Too little is left of this tile in one row: no copy is shared.
    # CHECK-LABEL: def small_tiles(
    # CHECK-NOT: else:
    @T.prim_func
    def small_tiles(A: T.Buffer((40, 20), "float32"), W: T.Buffer((3, 3), "float32"), C: T.Buffer((40, 20), "float32")):
        for i0, j0, r, s in T.grid(20, 5, 3, 3):
            for i1 in T.unroll(2):
                for j1 in T.unroll(4):
                    with T.block("C"):
                        vi = T.axis.spatial(40, i0 * 2 + i1)
                        vj = T.axis.spatial(20, j0 * 4 + j1)
                        vr, vs = T.axis.remap("RR", [r, s])
                        T.block_attr({"tilefarm.skip_padding": 1})
                        C[vi, vj] = C[vi, vj] + T.if_then_else(1 <= vi + vr and vi + vr < 41 and 1 <= vj + vs and vj + vs < 21, A[vi + vr - 1, vj + vs - 1], T.float32(0)) * W[vr, vs]

    # Stride 2, taps two apart; some rows may have no term.
    # CHECK-LABEL: def strided(
    # CHECK-NEXT: for i, r in T.grid(8, T.max(T.min(3, 7 - i) - T.max(0, 3 - i), 0)):
    # CHECK-NEXT: for o
    # CHECK-NEXT: C[i, o] =
    # CHECK-LABEL: def taps_outside(
    @T.prim_func
    def strided(A: T.Buffer((9, 16), "float32"), W: T.Buffer((3,), "float32"), C: T.Buffer((8, 16), "float32")):
        for i, r in T.grid(8, 3):
            for o in T.vectorized(16):
                with T.block("C"):
                    vi, vo, vr = T.axis.remap("SSR", [i, o, r])
                    T.block_attr({"tilefarm.skip_padding": 1})
                    C[vi, vo] = C[vi, vo] + T.if_then_else(5 <= vi * 2 + vr * 2 and vi * 2 + vr * 2 < 14, A[vi * 2 + vr * 2 - 5, vo], T.float32(0)) * W[vr]

    # The loop over the taps is outside: the one over the rows gets bounds.
    # CHECK-NEXT: for r, i in T.grid(3, T.min(8, 9 - r) - T.max(0, 1 - r)):
    # CHECK-NEXT: for o
    # CHECK-NEXT: C[i + T.max(0, 1 - r), o] =
    @T.prim_func
    def taps_outside(A: T.Buffer((8, 16), "float32"), W: T.Buffer((3,), "float32"), C: T.Buffer((8, 16), "float32")):
        for r, i in T.grid(3, 8):
            for o in T.vectorized(16):
                with T.block("C"):
                    vi, vo, vr = T.axis.remap("SSR", [i, o, r])
                    T.block_attr({"tilefarm.skip_padding": 1})
                    C[vi, vo] = C[vi, vo] + T.if_then_else(1 <= vi + vr and vi + vr < 9, A[vi + vr - 1, vo], T.float32(0)) * W[vr]

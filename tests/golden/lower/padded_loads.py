# RUN: --stage partition
# Values that are read under a condition are guarded, too: the tiles inside have
# no condition, and those at the border only the ones that may fail there.
@I.ir_module
class Module:
    # CHECK-LABEL: def convolved(
    # CHECK: for h in range(54)
    # CHECK: T.if_then_else(1 <= w, A[h + r, w - 1, c], T.float32(0.0)) * W[r, 0, c]
    # CHECK: for t, r, s in T.grid(6, 3, 3)
    # CHECK-NEXT: for w in T.unroll(7)
    # CHECK-NEXT: for c in T.vectorized(16)
    # CHECK-NEXT: + A[h + r, t * 7 + w + s + 6, c] * W[r, s, c]
    # CHECK: T.if_then_else(w < 6, A[h + r, w + 50, c], T.float32(0.0)) * W[r, 2, c]
    @T.prim_func
    def convolved(A: T.Buffer((56, 56, 16), "float32"), W: T.Buffer((3, 3, 16), "float32"), C: T.Buffer((56, 56, 16), "float32")):
        for h, t, r, s in T.grid(56, 8, 3, 3):
            for w in T.unroll(7):
                for c in T.vectorized(16):
                    with T.block("C"):
                        vh = T.axis.spatial(56, h)
                        vw = T.axis.spatial(56, t * 7 + w)
                        vc, vr, vs = T.axis.remap("SRR", [c, r, s])
                        C[vh, vw, vc] = C[vh, vw, vc] + T.if_then_else(1 <= vh + vr and vh + vr < 57 and 1 <= vw + vs and vw + vs < 57, A[vh + vr - 1, vw + vs - 1, vc], T.float32(0)) * W[vr, vs, vc]

    # A mask that is data stays.
    # CHECK-LABEL: def masked(
    # CHECK-NEXT: for h, w in T.grid(56, 16)
    # CHECK-NEXT: T.if_then_else(M[h, w] != T.int32(0)
    @T.prim_func
    def masked(A: T.Buffer((56, 16), "float32"), M: T.Buffer((56, 16), "int32"), C: T.Buffer((56, 16), "float32")):
        for h, w in T.grid(56, 16):
            with T.block("C"):
                vh, vw = T.axis.remap("SS", [h, w])
                C[vh, vw] = T.if_then_else(M[vh, vw] != 0, A[vh, vw], T.float32(0))

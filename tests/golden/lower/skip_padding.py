# RUN: --stage partition
# Where a sum of products skips padding, loops are cut at the border: no copy of
# the code has a guard that is not known there.
@I.ir_module
class Module:
    @T.prim_func
    def skipped(A: T.Buffer((14, 14, 8), "float32"), W: T.Buffer((3, 3, 8, 16), "float32"), C: T.Buffer((14, 14, 16), "float32")):
        for h, r, s, k in T.grid(14, 3, 3, 8):
            for w in T.unroll(14):
                for o in T.vectorized(16):
                    with T.block("C"):
                        vh, vw, vo, vr, vs, vk = T.axis.remap("SSSRRR", [h, w, o, r, s, k])
                        T.block_attr({"tilefarm.skip_padding": 1})
                        C[vh, vw, vo] = C[vh, vw, vo] + T.if_then_else(1 <= vh + vr and vh + vr < 15 and 1 <= vw + vs and vw + vs < 15, A[vh + vr - 1, vw + vs - 1, vk], T.float32(0)) * W[vr, vs, vk, vo]
    # CHECK-LABEL: def skipped(
    # CHECK-NOT: T.if_then_else
    # The first row has two taps, and its first element another two.
    # CHECK-NOT: for h
    # CHECK: for r in range(2)
    # CHECK-NEXT: for k in range(8)
    # CHECK-NEXT: for w in T.unroll(14)
    # CHECK-NEXT: if 1 <= w
    # CHECK: A[r, w - 1, k] * W[r + 1, 0, k, o]
    # CHECK: for k in range(8)
    # CHECK-NEXT: for w in T.unroll(14)
    # CHECK-NEXT: for o
    # CHECK-NEXT: C[0, w, o] = C[0, w, o] + A[r, w, k] * W[r + 1, 1, k, o]
    # CHECK: for w in T.unroll(13)
    # CHECK-NEXT: for o
    # CHECK-NEXT: C[0, w, o] = C[0, w, o] + A[r, w + 1, k] * W[r + 1, 2, k, o]
    # CHECK: for h, r in T.grid(12, 3)
    # CHECK: A[h + r, w, k] * W[r, 1, k, o]
    # CHECK-NOT: for h
    # CHECK: for r in range(2)
    # CHECK: A[r + 12, w, k] * W[r, 1, k, o]
    # Without the annotation zeros are added.
    # CHECK-LABEL: def added(
    # CHECK: C[h, w] = C[h, w] + T.if_then_else(
    # CHECK-NOT: for
    @T.prim_func
    def added(A: T.Buffer((14, 14), "float32"), W: T.Buffer((3,), "float32"), C: T.Buffer((14, 14), "float32")):
        for h, w, s in T.grid(14, 14, 3):
            with T.block("C"):
                vh, vw, vs = T.axis.remap("SSR", [h, w, s])
                C[vh, vw] = C[vh, vw] + T.if_then_else(1 <= vw + vs and vw + vs < 15, A[vh, vw + vs - 1], T.float32(0)) * W[vs]

    # A maximum is no sum of products: the annotation says nothing.
    # CHECK-LABEL: def largest(
    # CHECK: C[h, w] = T.max(C[h, w], T.if_then_else(
    @T.prim_func
    def largest(A: T.Buffer((14, 14), "float32"), C: T.Buffer((14, 14), "float32")):
        for h, w, s in T.grid(14, 14, 3):
            with T.block("C"):
                vh, vw, vs = T.axis.remap("SSR", [h, w, s])
                T.block_attr({"tilefarm.skip_padding": 1})
                C[vh, vw] = T.max(C[vh, vw], T.if_then_else(1 <= vw + vs and vw + vs < 15, A[vh, vw + vs - 1], T.float32(0)))

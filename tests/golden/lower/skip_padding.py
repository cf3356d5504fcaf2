# RUN: --stage partition
# Where a sum of products skips padding no copy of the code has a guard that is
# not known there. What is left out of a row's taps is said by bounds; along the
# unrolled dimension the loop over the taps is cut.
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
    # CHECK-NEXT: for h, r in T.grid(14, T.min(3, 15 - h) - T.max(0, 1 - h))
    # CHECK-NEXT: for k in range(8)
    # CHECK-NEXT: for w in T.unroll(14)
    # CHECK-NEXT: if 1 <= w
    # CHECK-NEXT: for o
    # CHECK-NEXT: A[h + r + T.max(0, 1 - h) - 1, w - 1, k] * W[r + T.max(0, 1 - h), 0, k, o]
    # CHECK-NEXT: for k in range(8)
    # CHECK-NEXT: for w in T.unroll(14)
    # CHECK-NEXT: for o
    # CHECK-NEXT: A[h + r + T.max(0, 1 - h) - 1, w, k] * W[r + T.max(0, 1 - h), 1, k, o]
    # CHECK-NEXT: for k in range(8)
    # CHECK-NEXT: for w in T.unroll(13)
    # CHECK-NEXT: for o
    # CHECK-NEXT: A[h + r + T.max(0, 1 - h) - 1, w + 1, k] * W[r + T.max(0, 1 - h), 2, k, o]
    # Without the annotation zeros are added.
    # CHECK-LABEL: def added(
    # CHECK: C[h, 0] = C[h, 0] + T.float32(0.0) * W[0]
    # CHECK: C[h, 13] = C[h, 13] + T.float32(0.0) * W[2]
    @T.prim_func
    def added(A: T.Buffer((14, 14), "float32"), W: T.Buffer((3,), "float32"), C: T.Buffer((14, 14), "float32")):
        for h, w, s in T.grid(14, 14, 3):
            with T.block("C"):
                vh, vw, vs = T.axis.remap("SSR", [h, w, s])
                C[vh, vw] = C[vh, vw] + T.if_then_else(1 <= vw + vs and vw + vs < 15, A[vh, vw + vs - 1], T.float32(0)) * W[vs]

    # What a maximum takes from outside is left out where it is the identity,
    # and 0 is not.
    # CHECK-LABEL: def largest(
    # CHECK: C[h, 0] = T.max(C[h, 0], T.float32(0.0))
    @T.prim_func
    def largest(A: T.Buffer((14, 14), "float32"), C: T.Buffer((14, 14), "float32")):
        for h, w, s in T.grid(14, 14, 3):
            with T.block("C"):
                vh, vw, vs = T.axis.remap("SSR", [h, w, s])
                T.block_attr({"tilefarm.skip_padding": 1})
                C[vh, vw] = T.max(C[vh, vw], T.if_then_else(1 <= vw + vs and vw + vs < 15, A[vh, vw + vs - 1], T.float32(0)))

    # CHECK-LABEL: def lowest(
    # CHECK-NOT: T.if_then_else
    # CHECK: C[h, w] = T.max(C[h, w], A[h, w + s
    # CHECK-NOT: T.if_then_else
    @T.prim_func
    def lowest(A: T.Buffer((14, 14), "float32"), C: T.Buffer((14, 14), "float32")):
        for h, w, s in T.grid(14, 14, 3):
            with T.block("C"):
                vh, vw, vs = T.axis.remap("SSR", [h, w, s])
                T.block_attr({"tilefarm.skip_padding": 1})
                C[vh, vw] = T.max(C[vh, vw], T.if_then_else(1 <= vw + vs and vw + vs < 15, A[vh, vw + vs - 1], T.float32("-inf")))

# RUN: --stage unroll
# Copies of the code for a border that runs seldom (here one row of 32 each) are
# not unrolled by a pragma; T.unroll holds everywhere.
@I.ir_module
class Module:
    @T.prim_func
    def seldom(A: T.Buffer((32, 16), "float32"), W: T.Buffer((3, 4), "float32"), C: T.Buffer((32, 16), "float32")):
        for h in T.serial(32, annotations={"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 1}):
            for r, k in T.grid(3, 4):
                for w in T.unroll(2):
                    for o in T.vectorized(8):
                        with T.block("C"):
                            vh, vr, vk = T.axis.remap("SRR", [h, r, k])
                            vw = T.axis.spatial(16, w * 8 + o)
                            T.block_attr({"tilefarm.skip_padding": 1})
                            C[vh, vw] = C[vh, vw] + T.if_then_else(1 <= vh + vr and vh + vr < 33, A[vh + vr - 1, vw], T.float32(0)) * W[vr, vk]
    # CHECK-LABEL: def seldom(
    # The first row.
    # CHECK-NEXT: for r, k in T.grid(2, 4):
    # CHECK-NEXT: C[T.Ramp(0, 1, 8)] =
    # CHECK-NEXT: C[T.Ramp(8, 1, 8)] =
    # All in between: twelve products of two vectors.
    # CHECK-NEXT: for h in range(30):
    # CHECK-COUNT-24: C[T.Ramp(h * 16 + {{16|24}}, 1, 8)] =
    # The last one.
    # CHECK-NEXT: for r, k in T.grid(2, 4):
    # CHECK-NEXT: C[T.Ramp(496, 1, 8)] =
    # CHECK-NEXT: C[T.Ramp(504, 1, 8)] =
    # Four rows, of which none is seldom.
    # CHECK-LABEL: def often(
    # CHECK-NOT: {{^ *}}for
    @T.prim_func
    def often(A: T.Buffer((4, 16), "float32"), W: T.Buffer((3,), "float32"), C: T.Buffer((4, 16), "float32")):
        for h in T.serial(4, annotations={"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 1}):
            for r in range(3):
                for o in T.vectorized(16):
                    with T.block("C"):
                        vh, vr, vw = T.axis.remap("SRS", [h, r, o])
                        T.block_attr({"tilefarm.skip_padding": 1})
                        C[vh, vw] = C[vh, vw] + T.if_then_else(1 <= vh + vr and vh + vr < 5, A[vh + vr - 1, vw], T.float32(0)) * W[vr]

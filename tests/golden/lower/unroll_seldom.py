# RUN: --stage unroll
# Copies of the code for a border that runs seldom are not unrolled by a pragma;
# T.unroll holds everywhere.
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
    # One row of 32 at either end, which share a copy of the code.
    # CHECK-NEXT: for h in range(32):
    # CHECK-NEXT: if 1 <= h and h <= 30:
    # All in between: twelve products of two vectors.
    # CHECK-COUNT-24: C[T.Ramp(h * 16{{.*}}, 1, 8)] =
    # CHECK-NEXT: else:
    # CHECK-NEXT: for r, k in T.grid(T.min(3, 33 - h) - T.max(0, 1 - h), 4):
    # CHECK-NEXT: C[T.Ramp(h * 16, 1, 8)] =
    # CHECK-NEXT: C[T.Ramp(h * 16 + 8, 1, 8)] =
    # A loop that is cut: the first row reads one element, the others two.
    # CHECK-LABEL: def cut(
    # CHECK-NEXT: for k in range(4):
    # CHECK-NEXT: C[T.Ramp(0, 1, 8)] =
    # CHECK-NEXT: for h in range(31):
    # CHECK-COUNT-8: C[T.Ramp(h * 8 + 8, 1, 8)] =
    # CHECK-NEXT: @T.prim_func
    @T.prim_func
    def cut(A: T.Buffer((32, 8), "float32"), W: T.Buffer((4,), "float32"), C: T.Buffer((32, 8), "float32")):
        for h in T.serial(32, annotations={"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 1}):
            for k in range(4):
                for r in T.unroll(2):
                    for o in T.vectorized(8):
                        with T.block("C"):
                            vh, vr, vk, vo = T.axis.remap("SRRS", [h, r, k, o])
                            T.block_attr({"tilefarm.skip_padding": 1})
                            C[vh, vo] = C[vh, vo] + T.if_then_else(1 <= vh + vr, A[vh + vr - 1, vo], T.float32(0)) * W[vk]
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

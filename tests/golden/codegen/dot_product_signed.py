# RUN: --stage asm --target x86-64:sierraforest
# Signed bytes on both sides.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((12, 128), "int8"), B: T.Buffer((32, 2, 8, 4), "int8"), C: T.Buffer((12, 16), "int32")):
        for i_0, k in T.grid(2, 32):
            for i_1 in T.unroll(6):
                for j in T.unroll(2):
                    for l in T.vectorized(8, annotations={"tilefarm.dot_product": 1}):
                        with T.block("dot"):
                            vi = T.axis.spatial(12, i_0 * 6 + i_1)
                            vj = T.axis.spatial(2, j)
                            vk = T.axis.reduce(32, k)
                            vl = T.axis.spatial(8, l)
                            C[vi, vj * 8 + vl] = C[vi, vj * 8 + vl] + T.cast(A[vi, vk * 4 + 3], "int32") * T.cast(B[vk, vj, vl, 3], "int32") + T.cast(A[vi, vk * 4 + 2], "int32") * T.cast(B[vk, vj, vl, 2], "int32") + T.cast(A[vi, vk * 4 + 1], "int32") * T.cast(B[vk, vj, vl, 1], "int32") + T.cast(A[vi, vk * 4 + 0], "int32") * T.cast(B[vk, vj, vl, 0], "int32")
# CHECK: vpdpbssd
# CHECK-NOT: {{sp\)|call}}
# CHECK-COUNT-11: vpdpbssd
# CHECK-NOT: {{sp\)|call|vpdp|vdpb}}
# CHECK: j{{[a-z]+}} .LBB

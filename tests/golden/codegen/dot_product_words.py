# RUN: --stage asm --target x86-64:icelake-server
# Pairs of 16-bit integers.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((12, 64), "int16"), B: T.Buffer((32, 2, 16, 2), "int16"), C: T.Buffer((12, 32), "int32")):
        for i_0, k in T.grid(2, 32):
            for i_1 in T.unroll(6):
                for j in T.unroll(2):
                    for l in T.vectorized(16, annotations={"tilefarm.dot_product": 1}):
                        with T.block("dot"):
                            vi = T.axis.spatial(12, i_0 * 6 + i_1)
                            vj = T.axis.spatial(2, j)
                            vk = T.axis.reduce(32, k)
                            vl = T.axis.spatial(16, l)
                            C[vi, vj * 16 + vl] = C[vi, vj * 16 + vl] + T.cast(A[vi, vk * 2 + 1], "int32") * T.cast(B[vk, vj, vl, 1], "int32") + T.cast(A[vi, vk * 2 + 0], "int32") * T.cast(B[vk, vj, vl, 0], "int32")
# CHECK: vpdpwssd
# CHECK-NOT: {{sp\)|call}}
# CHECK-COUNT-11: vpdpwssd
# CHECK-NOT: {{sp\)|call|vpdp|vdpb}}
# CHECK: j{{[a-z]+}} .LBB

# RUN: --stage asm --target x86-64:cooperlake
# A 6 x 64 tile by vdpbf16ps: no spill and no call in the steady state.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((12, 64), "bfloat16"), B: T.Buffer((32, 4, 16, 2), "bfloat16"), C: T.Buffer((12, 64), "float32")):
        for i_0, k in T.grid(2, 32):
            for i_1 in T.unroll(6):
                for j in T.unroll(4):
                    for l in T.vectorized(16, annotations={"tilefarm.dot_product": 1}):
                        with T.block("dot"):
                            vi = T.axis.spatial(12, i_0 * 6 + i_1)
                            vj = T.axis.spatial(4, j)
                            vk = T.axis.reduce(32, k)
                            vl = T.axis.spatial(16, l)
                            C[vi, vj * 16 + vl] = C[vi, vj * 16 + vl] + T.cast(A[vi, vk * 2 + 1], "float32") * T.cast(B[vk, vj, vl, 1], "float32") + T.cast(A[vi, vk * 2 + 0], "float32") * T.cast(B[vk, vj, vl, 0], "float32")
# CHECK: vdpbf16ps
# CHECK-NOT: {{sp\)|call}}
# CHECK-COUNT-23: vdpbf16ps
# CHECK-NOT: {{sp\)|call|vpdp|vdpb}}
# CHECK: j{{[a-z]+}} .LBB

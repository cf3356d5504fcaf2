# RUN: --stage asm --target riscv64,cores=1,+v
# Vector registers of at least 128 bits, as the V extension promises.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 96), "float32"), C: T.Buffer((64, 96), "float32")):
        for i0, j0, k in T.grid(16, 6, 64):
            for i1 in T.unroll(4):
                for j1 in T.vectorized(16):
                    with T.block("C"):
                        vi = T.axis.spatial(64, i0 * 4 + i1)
                        vj = T.axis.spatial(96, j0 * 16 + j1)
                        vk = T.axis.reduce(64, k)
                        T.reads(A[vi, vk], B[vk, vj])
                        T.writes(C[vi, vj])
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
# CHECK: {{#}} %k
# CHECK-NOT: {{\(sp\)|vse32|vsetvl}}
# CHECK-COUNT-16: vfmacc.vf
# CHECK-NOT: {{vfmacc|\(sp\)|vse32}}
# CHECK: bne {{.*}} .LBB

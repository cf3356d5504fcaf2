# RUN: --stage asm --target armv7:cortex-a7,cores=1
# Eight accumulators in NEON registers, A's elements taken by lane.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 96), "float32"), C: T.Buffer((64, 96), "float32")):
        for i0, j0, k in T.grid(16, 12, 64):
            for i1 in T.unroll(4):
                for j1 in T.vectorized(8):
                    with T.block("C"):
                        vi = T.axis.spatial(64, i0 * 4 + i1)
                        vj = T.axis.spatial(96, j0 * 8 + j1)
                        vk = T.axis.reduce(64, k)
                        T.reads(A[vi, vk], B[vk, vj])
                        T.writes(C[vi, vj])
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
# Counted in 32 bits, and fused though LLVM would not.
# CHECK: @ %k
# CHECK-NOT: {{Spill|Reload|adc|vmul|vadd}}
# CHECK-COUNT-8: vfma.f32 q
# CHECK-NOT: {{vfma|Spill|Reload|adc|vmul|vadd}}
# CHECK: bne .LBB

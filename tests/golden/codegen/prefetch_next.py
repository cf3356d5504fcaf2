# RUN: --stage asm --target x86-64:icelake-server
# One fetch for each of the two rows at the head of 16 steps, none within.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 128), "float32"), B: T.Buffer((128, 16), "float32"), C: T.Buffer((64, 16), "float32")):
        for i0 in T.serial(32, annotations={"tilefarm.prefetch_next": 1}):
            for k in range(128):
                for i1 in T.unroll(2):
                    for j in T.vectorized(16):
                        with T.block("C"):
                            vi = T.axis.spatial(64, i0 * 2 + i1)
                            vj = T.axis.spatial(16, j)
                            vk = T.axis.reduce(128, k)
                            T.reads(A[vi, vk], B[vk, vj])
                            T.writes(C[vi, vj])
                            with T.init():
                                C[vi, vj] = T.float32(0)
                            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
# CHECK-COUNT-2: prefetcht0
# CHECK-NOT: prefetch
# CHECK: vfmadd

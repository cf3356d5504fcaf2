# RUN: --stage asm --target x86-64:skylake-avx512,cores=1
# Into the L2 cache, in the innermost loop.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 512), "float32"), B: T.Buffer((8, 512, 32), "float32"), C: T.Buffer((32, 256), "float32")):
        for n, m, k in T.grid(8, 4, 512):
            for i in T.unroll(8):
                for j in T.vectorized(32):
                    with T.block("C"):
                        vi = T.axis.spatial(32, m * 8 + i)
                        vj = T.axis.spatial(256, n * 32 + j)
                        vk = T.axis.reduce(512, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 32, vk, vj % 32]
# CHECK: main:
# CHECK: prefetcht1
# CHECK: vfmadd
# CHECK-NOT: prefetch

# RUN: --stage asm --target x86-64:skylake-avx512,cores=1
# RUN: --stage asm --target x86-64:haswell,cores=1 | --check-prefix=AVX2
# More accumulators than registers: those that spill lie at whole vectors on the
# stack, wherever the caller's stack ends.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 96), "float32"), C: T.Buffer((64, 96), "float32")):
        for i0, j0, k in T.grid(8, 1, 64):
            for i1 in T.unroll(8):
                for j1 in T.vectorized(96):
                    with T.block("C"):
                        vi = T.axis.spatial(64, i0 * 8 + i1)
                        vj = T.axis.spatial(96, j0 * 96 + j1)
                        vk = T.axis.reduce(64, k)
                        T.reads(A[vi, vk], B[vk, vj])
                        T.writes(C[vi, vj])
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
# CHECK: tilefarm_main:
# CHECK: andq $-64, %rsp
# CHECK-NOT: vmovups {{.*}}(%rsp)
# CHECK: vmovaps %zmm{{[0-9]+}}, {{.*}}(%rsp)
# CHECK-NOT: vmovups {{.*}}(%rsp)
# CHECK: retq
# AVX2: tilefarm_main:
# AVX2: andq $-32, %rsp
# AVX2-NOT: vmovups {{.*}}(%rsp)
# AVX2: vmovaps %ymm{{[0-9]+}}, {{.*}}(%rsp)
# AVX2-NOT: vmovups {{.*}}(%rsp)
# AVX2: retq

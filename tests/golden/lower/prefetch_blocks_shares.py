# RUN: --stage lowered --target x86-64:skylake-avx512,cores=1
# Two repetitions fetch 96 bytes of a row each: two lines. Of 256 bytes two would
# fetch two lines beside 16 uses of a row, so that the larger block, which four
# repeat, is fetched. With 64 repetitions of a row of 16 numbers, one fetches a
# number of every fourth row.
@I.ir_module
class Module:
    @T.prim_func
    def halves(A: T.Buffer((16, 512), "float32"), B: T.Buffer((8, 512, 48), "float32"), C: T.Buffer((16, 384), "float32")):
        for n, m, k in T.grid(8, 2, 512):
            for i in T.unroll(8):
                for j in T.vectorized(48):
                    with T.block("C"):
                        vi = T.axis.spatial(16, m * 8 + i)
                        vj = T.axis.spatial(384, n * 48 + j)
                        vk = T.axis.reduce(512, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 48, vk, vj % 48]

    @T.prim_func
    def larger(A: T.Buffer((16, 512), "float32"), B: T.Buffer((4, 512, 64), "float32"), C: T.Buffer((16, 256), "float32")):
        for n, m0, k0, m1, k1 in T.grid(4, 2, 32, 2, 16):
            for i in T.unroll(4):
                for j in T.vectorized(64):
                    with T.block("C"):
                        vi = T.axis.spatial(16, m0 * 8 + m1 * 4 + i)
                        vj = T.axis.spatial(256, n * 64 + j)
                        vk = T.axis.reduce(512, k0 * 16 + k1)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 64, vk, vj % 64]

    @T.prim_func
    def groups(A: T.Buffer((768, 512), "float32"), B: T.Buffer((8, 512, 16), "float32"), C: T.Buffer((768, 128), "float32")):
        for n, m, k in T.grid(8, 64, 512):
            for i in T.unroll(12):
                for j in T.vectorized(16):
                    with T.block("C"):
                        vi = T.axis.spatial(768, m * 12 + i)
                        vj = T.axis.spatial(128, n * 16 + j)
                        vk = T.axis.reduce(512, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 16, vk, vj % 16]
# CHECK: def halves
# CHECK: T.prefetch(B[T.min(n * 24576 + m * 12288 + k * 24 + 24576, 196607)])
# CHECK-NEXT: T.prefetch(B[T.min(n * 24576 + m * 12288 + k * 24 + 24592, 196607)])
# CHECK: def larger
# CHECK: T.prefetch(B[T.min(n * 32768 + k0 * 1024 + m0 * 512 + m1 * 256 + k1 * 16 + 32768, 131071)])
# CHECK: def groups
# CHECK: T.prefetch(B[T.min(n * 8192 + m * 128 + k // 4 + 8192, 65535)])

# RUN: --stage lowered --target x86-64:skylake-avx512,cores=1
# Each of eight panels of B is read for four tiles of rows; meanwhile a quarter
# of each row of the next panel is fetched. A's rows are not side by side.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 512), "float32"), B: T.Buffer((8, 512, 32), "float32"), C: T.Buffer((32, 256), "float32")):
        for n in range(8):
            for m in range(4):
                for k in range(512):
                    for i in T.unroll(8):
                        for j in T.vectorized(32):
                            with T.block("C"):
                                vi = T.axis.spatial(32, m * 8 + i)
                                vj = T.axis.spatial(256, n * 32 + j)
                                vk = T.axis.reduce(512, k)
                                with T.init():
                                    C[vi, vj] = T.float32(0)
                                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 32, vk, vj % 32]
# CHECK: for n, m in
# CHECK: for k in range(512):
# CHECK-NEXT: T.evaluate(T.prefetch(B[T.min(n * 16384 + m * 4096 + k * 8 + 16384, 131071)]))
# CHECK-NEXT: C_acc
# CHECK-NOT: prefetch

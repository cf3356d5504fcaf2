# RUN: --stage asm --target aarch64:cortex-a76,cores=1
# Four sums of four products of signed bytes in an instruction.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 128), "int8"), B: T.Buffer((32, 2, 4, 4), "int8"), C: T.Buffer((8, 8), "int32")):
        for i_0, k in T.grid(2, 32):
            for i_1 in T.unroll(4):
                for j in T.unroll(2):
                    for l in T.vectorized(4, annotations={"tilefarm.dot_product": 1}):
                        with T.block("dot"):
                            vi = T.axis.spatial(8, i_0 * 4 + i_1)
                            vj = T.axis.spatial(2, j)
                            vk = T.axis.reduce(32, k)
                            vl = T.axis.spatial(4, l)
                            C[vi, vj * 4 + vl] = C[vi, vj * 4 + vl] + T.cast(A[vi, vk * 4 + 3], "int32") * T.cast(B[vk, vj, vl, 3], "int32") + T.cast(A[vi, vk * 4 + 2], "int32") * T.cast(B[vk, vj, vl, 2], "int32") + T.cast(A[vi, vk * 4 + 1], "int32") * T.cast(B[vk, vj, vl, 1], "int32") + T.cast(A[vi, vk * 4 + 0], "int32") * T.cast(B[vk, vj, vl, 0], "int32")
# CHECK: {{//}} %k
# CHECK-COUNT-8: sdot v{{[0-9]+}}.4s
# CHECK-NOT: {{sdot|sp\]|str}}
# CHECK: b.ne .LBB

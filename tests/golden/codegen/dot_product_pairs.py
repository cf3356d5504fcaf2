# RUN: --stage asm --target x86-64:haswell
# Where no instruction adds up four products, two of pairs do: the bytes of B are
# widened once for all rows, and nothing leaves the registers.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((12, 128), "uint8"), B: T.Buffer((32, 2, 8, 4), "int8"), C: T.Buffer((12, 16), "int32")):
        for i_0, k in T.grid(3, 32):
            for i_1 in T.unroll(4):
                for j in T.unroll(2):
                    for l in T.vectorized(8, annotations={"tilefarm.dot_product": 1}):
                        with T.block("dot"):
                            vi = T.axis.spatial(12, i_0 * 4 + i_1)
                            vj = T.axis.spatial(2, j)
                            vk = T.axis.reduce(32, k)
                            vl = T.axis.spatial(8, l)
                            C[vi, vj * 8 + vl] = C[vi, vj * 8 + vl] + T.cast(A[vi, vk * 4 + 3], "int32") * T.cast(B[vk, vj, vl, 3], "int32") + T.cast(A[vi, vk * 4 + 2], "int32") * T.cast(B[vk, vj, vl, 2], "int32") + T.cast(A[vi, vk * 4 + 1], "int32") * T.cast(B[vk, vj, vl, 1], "int32") + T.cast(A[vi, vk * 4 + 0], "int32") * T.cast(B[vk, vj, vl, 0], "int32")
# CHECK: vpmaddwd
# CHECK-NOT: {{sp\)|call}}
# CHECK-COUNT-15: vpmaddwd
# CHECK-NOT: {{sp\)|call|vpmadd|vpmov|vpmull}}
# CHECK: j{{[a-z]+}} .LBB

# RUN: --stage lowered --target x86-64:icelake-server
# Four products of bytes an element are one operation on groups that lie side by
# side, and its sums stay in registers.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((12, 128), "uint8"), B: T.Buffer((32, 4, 16, 4), "int8"), C: T.Buffer((12, 64), "int32")):
        for i_0, k in T.grid(2, 32):
            for i_1 in T.unroll(6):
                for j in T.unroll(4):
                    for l in T.vectorized(16, annotations={"tilefarm.dot_product": 1}):
                        with T.block("dot"):
                            vi = T.axis.spatial(12, i_0 * 6 + i_1)
                            vj = T.axis.spatial(4, j)
                            vk = T.axis.reduce(32, k)
                            vl = T.axis.spatial(16, l)
                            C[vi, vj * 16 + vl] = C[vi, vj * 16 + vl] + T.cast(A[vi, vk * 4 + 3], "int32") * T.cast(B[vk, vj, vl, 3], "int32") + T.cast(A[vi, vk * 4 + 2], "int32") * T.cast(B[vk, vj, vl, 2], "int32") + T.cast(A[vi, vk * 4 + 1], "int32") * T.cast(B[vk, vj, vl, 1], "int32") + T.cast(A[vi, vk * 4 + 0], "int32") * T.cast(B[vk, vj, vl, 0], "int32")
# CHECK: for k in range(32)
# CHECK-NOT: T.Cast
# CHECK-COUNT-24: = T.dot_product(A[T.Ramp({{.*}}, 1, 4)], B[T.Ramp({{.*}}, 1, 64)], C_acc[T.Ramp({{[0-9]+}}, 1, 16)])
# CHECK-NOT: T.dot_product

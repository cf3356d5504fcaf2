# RUN: --stage lowered --target x86-64:sapphirerapids
# Products of small matrices are one operation each of a matrix unit, whose sums
# stay in its registers.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 256), "uint8"), B: T.Buffer((2, 64, 16, 4), "int8"), C: T.Buffer((2, 2, 16, 16), "int32")):
        for k0 in range(4):
            for i0 in T.unroll(2):
                for j0 in T.unroll(2):
                    for i in T.serial(16, annotations={"tilefarm.matrix_product": 1}):
                        for j in T.vectorized(16):
                            for k, g in T.grid(16, 4):
                                with T.block("C"):
                                    vi0, vj0, vi, vj = T.axis.remap("SSSS", [i0, j0, i, j])
                                    vk = T.axis.reduce(64, k0 * 16 + k)
                                    vg = T.axis.reduce(4, g)
                                    C[vi0, vj0, vi, vj] = C[vi0, vj0, vi, vj] + T.cast(A[vi0 * 16 + vi, vk * 4 + vg], "int32") * T.cast(B[vj0, vk, vj, vg], "int32")
# CHECK: for k0 in range(4)
# CHECK-NOT: T.Cast
# CHECK: C_acc[T.Ramp(0, 1, 256)] = T.tile_product(A[k0 * 64], 256, B[k0 * 1024], 64, C_acc[T.Ramp(0, 1, 256)])
# CHECK: C_acc[T.Ramp(256, 1, 256)] = T.tile_product(A[k0 * 64], 256, B[k0 * 1024 + 4096], 64, C_acc[T.Ramp(256, 1, 256)])
# CHECK-COUNT-2: = T.tile_product(
# CHECK-NOT: T.tile_product

# RUN: --stage asm --target x86-64:icelake-server
# Without a matrix unit the same program is vector code.
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
# CHECK-NOT: tdpb
# CHECK: vp
# CHECK-NOT: tile{{(load|store|release)}}

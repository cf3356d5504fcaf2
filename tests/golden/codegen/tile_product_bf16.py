# RUN: --stage asm --target x86-64:sapphirerapids
# The same of bfloat16.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 128), "bfloat16"), B: T.Buffer((2, 64, 16, 2), "bfloat16"), C: T.Buffer((2, 2, 16, 16), "float32")):
        for k0 in range(4):
            for i0 in T.unroll(2):
                for j0 in T.unroll(2):
                    for i in T.serial(16, annotations={"tilefarm.matrix_product": 1}):
                        for j in T.vectorized(16):
                            for k, g in T.grid(16, 2):
                                with T.block("C"):
                                    vi0, vj0, vi, vj = T.axis.remap("SSSS", [i0, j0, i, j])
                                    vk = T.axis.reduce(64, k0 * 16 + k)
                                    vg = T.axis.reduce(2, g)
                                    C[vi0, vj0, vi, vj] = C[vi0, vj0, vi, vj] + T.cast(A[vi0 * 16 + vi, vk * 2 + vg], "float32") * T.cast(B[vj0, vk, vj, vg], "float32")
# CHECK: tf_rt_enable_tiles
# CHECK: ldtilecfg
# CHECK-COUNT-4: tileloadd
# CHECK: # %k0
# CHECK-COUNT-4: {{tileloadd|tdpbf16ps}}
# CHECK-COUNT-4: {{tileloadd|tdpbf16ps}}
# CHECK-NOT: {{tileloadd|tilestored|tdpbf16ps}}
# CHECK: j{{[a-z]+}} .LBB
# CHECK-COUNT-4: tilestored
# CHECK-NOT: tdpbf16ps
# CHECK: tilerelease

# RUN: --stage asm --target x86-64:znver4,cores=1
# RUN: --stage asm --target x86-64:znver4,cores=4 | --check-prefix=PAR
# Whole vectors of an output go around the caches where the caller's memory is
# aligned; a fence ends them. Otherwise the loop stores as ever.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32")):
        for i in T.parallel(4, annotations={"tilefarm.streaming_stores": 1}):
            for j in range(32):
                for k in T.vectorized(32):
                    with T.block("B"):
                        vi = T.axis.spatial(4096, i * 1024 + j * 32 + k)
                        B[vi] = A[vi] * T.float32(2)
# CHECK: tilefarm_main:
# CHECK: testb $63
# CHECK: vmovups %zmm
# CHECK-COUNT-2: vmovntps %zmm
# CHECK-NOT: vmovntps
# CHECK: sfence
# PAR: tilefarm_main:
# PAR: testb $63
# PAR: parallel0:
# PAR-COUNT-2: vmovntps %zmm
# PAR: sfence
# PAR: parallel1:
# PAR-NOT: vmovntps

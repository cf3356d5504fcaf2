# RUN: --stage asm --target x86-64:skylake-avx512,cores=1
# RUN: --stage asm --target aarch64:cortex-a72,cores=1 | --check-prefix=NEON
# Every second column comes from two contiguous loads and a shuffle a register,
# in the masked tail, too.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 60), "float32"), B: T.Buffer((8, 30), "float32")):
        for i in range(8):
            for j in T.vectorized(30):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(30, j)
                    B[vi, vj] = A[vi, vj * 2]
# CHECK: tilefarm_main:
# CHECK-NOT: {{vgather|vinsert|vmovss}}
# CHECK: vpermt2ps
# CHECK-NOT: {{vgather|vinsert|vmovss}}
# CHECK: retq
# NEON: tilefarm_main:
# NEON-NOT: ld1 {v{{[0-9]+}}.s}[
# NEON: ret

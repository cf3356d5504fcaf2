# RUN: --stage asm --target x86-64:skylake-avx512,cores=1
# RUN: --stage asm --target x86-64:haswell,cores=1 | --check-prefix=AVX2
# RUN: --stage asm --target aarch64:cortex-a72,cores=1 | --check-prefix=NEON
# Columns of a matrix become rows by loads, shuffles and stores of whole
# registers; no element moves alone.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
        for j, r in T.grid(4, 64):
            for l in T.vectorized(16):
                with T.block("B"):
                    vi = T.axis.spatial(64, r)
                    vj = T.axis.spatial(64, j * 16 + l)
                    B[vi, vj] = A[vj, vi]
# CHECK: tilefarm_main:
# CHECK-NOT: vinsert
# CHECK-NOT: {{vmovss|vmovd}}
# CHECK: vunpcklps {{.*}}%zmm
# CHECK-NOT: {{vinsert|vmovss|vmovd |vpermt2}}
# CHECK: vshuff64x2 {{.*}}%zmm
# CHECK-NOT: {{vinsert|vmovss|vmovd |vpermt2}}
# CHECK: retq
# AVX2: tilefarm_main:
# AVX2: vunpcklps {{.*}}%ymm
# AVX2-NOT: {{vinsertps|vmovss}}
# AVX2: retq
# NEON: tilefarm_main:
# NEON: zip1
# NEON-NOT: ld1 {v{{[0-9]+}}.s}
# NEON: ret

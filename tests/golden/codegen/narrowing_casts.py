# RUN: --stage asm --target x86-64:haswell,cores=1
# RUN: --stage asm --target x86-64:skylake-avx512,cores=1
# Requantisation: rounded, clipped once and stored as bytes, eight or more at a
# time.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 32), "float32"), B: T.Buffer((64, 32), "uint8"), C: T.Buffer((64, 32), "int8")):
        for i in range(64):
            for j in T.vectorized(32):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = T.Cast("uint8", T.min(T.max(T.nearbyint(A[vi, vj] / T.float32(3)) + T.float32(7), T.float32(0)), T.float32(255)))
        for i in range(64):
            for j in T.vectorized(32):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.Cast("int8", A[vi, vj])
# CHECK: tilefarm_main:
# CHECK-NOT: {{vcvtt?ss2si|vpinsrb|vpextrb}}
# CHECK: vmaxps
# CHECK-NEXT: vminps
# CHECK-NEXT: vcvttps2dq
# CHECK-NOT: {{vcvtt?ss2si|vpinsrb|vpextrb}}
# CHECK: retq

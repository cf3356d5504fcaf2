# RUN: --stage lowered --target x86-64:skylake-avx512,cores=1
# RUN: --stage lowered --target x86-64:haswell,cores=1 | --check-prefix=EIGHT
# RUN: --stage lowered --target riscv64:sifive-u74,cores=1 | --check-prefix=NONE
# A loop over columns of an input whose rows are the lanes reads tiles by rows;
# a multiple of the lanes leaves a loop over tiles.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 96), "float32"), B: T.Buffer((96, 64), "float32")):
        for j, i, r in T.grid(4, 3, 32):
            for l in T.vectorized(16):
                with T.block("B"):
                    vi = T.axis.spatial(96, i * 32 + r)
                    vj = T.axis.spatial(64, j * 16 + l)
                    B[vi, vj] = A[vj, vi] + T.float32(1)
# CHECK: for j, i, r_tile in T.grid(4, 3, 2):
# CHECK-NEXT: B[T.Ramp({{.*}}, 1, 16)] = T.transposed(0, A[T.Ramp([[BASE:.*]], 96, 16)]) + T.Broadcast(T.float32(1.0), 16)
# CHECK-COUNT-14: T.transposed(
# CHECK-NEXT: T.transposed(15, A[T.Ramp([[BASE]], 96, 16)])
# CHECK-NOT: T.transposed
# EIGHT: for j, i, r_tile in T.grid(4, 3, 4):
# EIGHT-COUNT-8: T.transposed({{[0-7]}}, A[T.Ramp(j * 1536 + i * 32 + r_tile * 8, 96, 8)])
# EIGHT-COUNT-8: T.transposed({{[0-7]}}, A[T.Ramp(j * 1536 + i * 32 + r_tile * 8 + 768, 96, 8)])
# NONE-NOT: T.transposed

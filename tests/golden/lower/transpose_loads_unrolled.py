# RUN: --stage lowered --target x86-64:haswell,cores=1
# Unrolled columns make tiles as well, of two inputs at once; what is left over
# is read element by element.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 96), "float32"), C: T.Buffer((8, 32), "float32"), B: T.Buffer((96, 8), "float32")):
        for r in T.unroll(10):
            for l in T.vectorized(8):
                with T.block("B"):
                    vi = T.axis.spatial(96, r)
                    vj = T.axis.spatial(8, l)
                    B[vi, vj] = A[vj, vi] * C[vj, vi + 3]
# CHECK: B[T.Ramp(0, 1, 8)] = T.transposed(0, A[T.Ramp(0, 96, 8)]) * T.transposed(0, C[T.Ramp(3, 32, 8)])
# CHECK: B[T.Ramp(56, 1, 8)] = T.transposed(7, A[T.Ramp(0, 96, 8)]) * T.transposed(7, C[T.Ramp(3, 32, 8)])
# CHECK: B[T.Ramp(64, 1, 8)] = A[T.Ramp(8, 96, 8)] * C[T.Ramp(11, 32, 8)]
# CHECK: B[T.Ramp(72, 1, 8)] = A[T.Ramp(9, 96, 8)] * C[T.Ramp(12, 32, 8)]

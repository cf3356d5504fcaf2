# RUN: --stage lowered --target x86-64:haswell,cores=1
# No tile: too few columns; columns that are two apart; elements that may not
# be read; what is read was written just before; rows that overlap; a place that
# memory names.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((128, 64), "float32"), B: T.Buffer((6, 8), "float32"), C: T.Buffer((8, 8), "float32"), D: T.Buffer((8, 8), "float32"), E: T.Buffer((128, 64), "float32"), F: T.Buffer((8, 8), "float32"), n: T.Buffer((8,), "int32"), G: T.Buffer((8, 8), "int32"), K: T.Buffer((128, 64), "int32")):
        for r in range(6):
            for l in T.vectorized(8):
                with T.block("B"):
                    vi = T.axis.spatial(6, r)
                    vj = T.axis.spatial(8, l)
                    B[vi, vj] = A[vj, vi]
        for r in range(8):
            for l in T.vectorized(8):
                with T.block("C"):
                    vi = T.axis.spatial(8, r)
                    vj = T.axis.spatial(8, l)
                    C[vi, vj] = A[vj, vi * 2]
        for r in range(8):
            for l in T.vectorized(8):
                with T.block("D"):
                    vi = T.axis.spatial(8, r)
                    vj = T.axis.spatial(8, l)
                    D[vi, vj] = T.if_then_else(n[vi] > 0, A[vj, vi], T.float32(0))
        for r in range(8):
            for l in T.vectorized(8):
                with T.block("E"):
                    vi = T.axis.spatial(8, r)
                    vj = T.axis.spatial(8, l)
                    E[vi, vj] = E[vj + 64, vi]
        for r in range(8):
            for l in T.vectorized(8):
                with T.block("F"):
                    vi = T.axis.spatial(8, r)
                    vj = T.axis.spatial(8, l)
                    F[vi, vj] = A[vj // 16, vj * 4 + vi]
        for r in range(8):
            for l in T.vectorized(8):
                with T.block("G"):
                    vi = T.axis.spatial(8, r)
                    vj = T.axis.spatial(8, l)
                    G[vi, vj] = K[vj + T.max(T.min(n[0], 64), 0), vi]
# CHECK-NOT: T.transposed

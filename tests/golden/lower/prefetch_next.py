# RUN: --stage lowered
# While the k loop runs for two rows of A, line by line, the next two are
# fetched: 2 rows of 40 floats ahead. What is left of a line has no fetch, and
# B does not move with i0.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 40), "float32"), B: T.Buffer((40, 16), "float32"), C: T.Buffer((64, 16), "float32")):
        for i0 in T.serial(32, annotations={"tilefarm.prefetch_next": 1}):
            for k in range(40):
                for i1 in T.unroll(2):
                    for j in T.vectorized(16):
                        with T.block("C"):
                            vi = T.axis.spatial(64, i0 * 2 + i1)
                            vj = T.axis.spatial(16, j)
                            vk = T.axis.reduce(40, k)
                            T.reads(A[vi, vk], B[vk, vj])
                            T.writes(C[vi, vj])
                            with T.init():
                                C[vi, vj] = T.float32(0)
                            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
# CHECK: for i0 in
# CHECK: for [[LINE:k_line]] in T.serial(2, annotations={"tilefarm.prefetch_lines": ["A", 320]})
# CHECK-NEXT: for [[K:k[_0-9]*]] in range(16)
# CHECK-NEXT: T.Broadcast(A[i0 * 80 + [[LINE]] * 16 + [[K]]]
# CHECK: for [[REST:k[_0-9]*]] in range(8)
# CHECK-NEXT: T.Broadcast(A[i0 * 80 + [[REST]] + 32]
# CHECK-NOT: prefetch

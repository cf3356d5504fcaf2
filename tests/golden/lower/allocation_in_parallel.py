# RUN: --stage plain
# What an iteration writes before it reads is its own, and only as large as
# what it touches.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 62), "float32")):
        B = T.alloc_buffer((64, 64))
        for i in T.parallel(64):
            for j in range(64):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj] * T.float32(2)
            for j in range(62):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(B[vi, vj:vj + 3])
                    T.writes(C[vi, vj])
                    C[vi, vj] = B[vi, vj] + B[vi, vj + 2]
# CHECK: for i in T.parallel(64)
# CHECK-NEXT: T.allocate((1, 64), "float32", "global") as B
# CHECK: B[0, j] = A[i, j]
# CHECK: C[i, j] = B[0, j] + B[0, j + 2]

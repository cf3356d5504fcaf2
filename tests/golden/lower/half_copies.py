# RUN: --stage lowered --target x86-64:icelake-server
# A copy of 16-bit floats is kept widened; what is computed rounds as written.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float16"), C: T.Buffer((64, 64), "float16"), E: T.Buffer((64, 64), "float16")):
        B = T.alloc_buffer((64, 64), "float16")
        D = T.alloc_buffer((64, 64), "float16")
        for i in range(64):
            for j in T.vectorized(64):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = T.if_then_else(vi < 60, A[vi, vj], T.float16(0))
        for i in range(64):
            for j in T.vectorized(64):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[63 - vi, vj]
        for i in range(64):
            for j in T.vectorized(64):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = A[vi, vj] * A[vi, vj]
        for i in range(64):
            for j in T.vectorized(64):
                with T.block("E"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    E[vi, vj] = D[63 - vi, vj] + A[vi, vj]
# CHECK-DAG: T.allocate((4096,), "float32", "global") as B
# CHECK-DAG: T.allocate((4096,), "float16", "global") as D

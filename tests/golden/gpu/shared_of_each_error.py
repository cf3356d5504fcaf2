# RUN-FAIL: --target cuda:sm_80 --stage threads
# Each thread's values would be in the same place.
@T.prim_func
def main(A: T.Buffer((64, 4), "float32"), B: T.Buffer((64, 4), "float32")):
    S = T.alloc_buffer((4,), "float32", scope="shared")
    for x in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            for j in range(4):
                with T.block("S"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    S[vj] = A[vi, vj] * T.float32(2)
            for j in range(4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = S[vj] + T.float32(1)
# CHECK: threads store different values to the same elements of S, which they share; use the scope "local"

# RUN-FAIL: --target cuda:sm_80 --stage threads
@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i in T.thread_binding(64, thread="threadIdx.y"):
        for j in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
# CHECK: a block has 4096 threads; the target can have 1024

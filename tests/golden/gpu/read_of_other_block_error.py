# RUN-FAIL: --target cuda:sm_80 --stage barriers
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    C = T.alloc_buffer((64,), scope="global")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("C"):
                vi = T.axis.spatial(64, b * 32 + t)
                C[vi] = A[vi] + T.float32(1)
            with T.block("B"):
                vi = T.axis.spatial(64, b * 32 + t)
                B[vi] = C[63 - vi]
# CHECK: a block of threads may read elements of C that another block of the kernel writes; give it a nest of its own

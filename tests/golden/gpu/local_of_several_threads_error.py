# RUN-FAIL: --target cuda:sm_80 --stage threads
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    L = T.alloc_buffer((32,), scope="local")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("L"):
                vi = T.axis.spatial(32, t)
                L[vi] = A[vi]
        for t in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(32, b * 16 + t)
                B[vi] = L[31 - vi]
# CHECK: buffer L is local to a thread, but its elements are written by several

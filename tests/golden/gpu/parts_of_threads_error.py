# RUN-FAIL: --target cuda:sm_80 --stage threads
# The fifth element is the first one of the next thread.
@T.prim_func
def main(A: T.Buffer((260,), "float32"), B: T.Buffer((64,), "float32")):
    P = T.alloc_buffer((260,), "float32", scope="local")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(65, thread="threadIdx.x"):
            for j in range(4):
                with T.block("P"):
                    v = T.axis.spatial(260, t * 4 + j)
                    P[v] = A[v] * A[v]
        for u in T.thread_binding(64, thread="threadIdx.x"):
            for j in range(5):
                with T.block("B"):
                    vu, vj = T.axis.remap("SR", [u, j])
                    with T.init():
                        B[vu] = T.float32(0)
                    B[vu] = B[vu] + P[vu * 4 + vj]
# CHECK: buffer P is local to a thread, but its elements are written by several

# RUN: --target cuda:sm_80 --stage threads
# A thread accesses its own four elements alone, in both loops of threads: each
# has four of its own.
@T.prim_func
def main(A: T.Buffer((256,), "float32"), B: T.Buffer((64,), "float32")):
    P = T.alloc_buffer((256,), "float32", scope="local")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            for j in range(4):
                with T.block("P"):
                    v = T.axis.spatial(256, t * 4 + j)
                    P[v] = A[v] * A[v]
        for u in T.thread_binding(64, thread="threadIdx.x"):
            for j in range(4):
                with T.block("B"):
                    vu, vj = T.axis.remap("SR", [u, j])
                    with T.init():
                        B[vu] = T.float32(0)
                    B[vu] = B[vu] + P[vu * 4 + vj]
# CHECK: with T.allocate((4,), "float32", "local") as P:
# CHECK: P[j] = A[threadIdx_x * 4 + j] * A[threadIdx_x * 4 + j]
# CHECK: B[threadIdx_x] = B[threadIdx_x] + P[j]

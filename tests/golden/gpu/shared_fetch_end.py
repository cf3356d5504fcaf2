# RUN: --target cuda:sm_80 --stage allocate
# 48 elements of 2 x 32 threads, two at once: the last threads fetch nothing,
# and the buffer has no room for them. Its rows are of 8, which the order of its
# elements puts beside each other.
@T.prim_func
def main(A: T.Buffer((4, 64, 6), "float32"), B: T.Buffer((4, 64, 6), "float32")):
    A_shared = T.alloc_buffer((4, 6, 64), scope="shared")
    for b in T.thread_binding(32, thread="blockIdx.x"):
        for n in range(1):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                for v in T.vectorized(2):
                    with T.block("A_shared"):
                        vb = T.axis.spatial(4, b // 8)
                        vi = T.axis.spatial(64, b % 8 * 8 + (n * 64 + t * 2 + v) // 6)
                        vj = T.axis.spatial(6, (n * 64 + t * 2 + v) % 6)
                        T.where(n * 64 + t * 2 + v < 48)
                        A_shared[vb, vj, vi] = A[vb, vi, vj]
        for i, j in T.grid(2, 6):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    vb = T.axis.spatial(4, b // 8)
                    vi = T.axis.spatial(64, b % 8 * 8 + i * 4 + t % 4)
                    vj = T.axis.spatial(6, j)
                    T.where(t < 4)
                    B[vb, vi, vj] = A_shared[vb, vj, vi]
# CHECK: T.allocate((1, 6, 8), "float32", "shared") as A_shared

# RUN: --target cuda:sm_80 --stage allocate
# Sums of threads for 50 of 64 rows: nobody reads the sums of rows from 50 on, so
# they are computed without a condition, from what lies in shared memory there.
# The fetch and the copy keep theirs.
@T.prim_func
def main(A: T.Buffer((50, 8), "float32"), B: T.Buffer((50,), "float32")):
    A_shared = T.alloc_buffer((50, 8), scope="shared")
    B_local = T.alloc_buffer((50,), scope="local")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for f in range(8):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("A_shared"):
                    vi = T.axis.spatial(50, b * 32 + t)
                    vk = T.axis.spatial(8, f)
                    T.where(b * 32 + t < 50)
                    A_shared[vi, vk] = A[vi, vk]
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for k in range(8):
                with T.block("B_local"):
                    vi = T.axis.spatial(50, b * 32 + t)
                    vk = T.axis.reduce(8, k)
                    T.where(b * 32 + t < 50)
                    with T.init():
                        B_local[vi] = T.float32(0)
                    B_local[vi] = B_local[vi] + A_shared[vi, vk]
            with T.block("B"):
                vi = T.axis.spatial(50, b * 32 + t)
                T.where(b * 32 + t < 50)
                B[vi] = B_local[vi]
# CHECK: T.block("A_shared")
# CHECK: T.where(b * 32 + t < 50)
# CHECK: T.block("B_local")
# CHECK-NOT: T.where
# CHECK: T.block("B")
# CHECK: T.where(b * 32 + t < 50)

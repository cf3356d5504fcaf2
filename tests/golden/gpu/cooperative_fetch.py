# RUN: --target cuda:sm_80 --stage barriers
# The threads fetch rows together and each reads all of them: a barrier after
# the fetch, and one before it for the rows of the iteration before.
@T.prim_func
def main(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64, 128), "float32")):
    A_shared = T.alloc_buffer((64, 128), scope="shared")
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for j in T.thread_binding(128, thread="threadIdx.x"):
            for k in range(8):
                for a in T.thread_binding(128, thread="threadIdx.x"):
                    with T.block("A_shared"):
                        vi = T.axis.spatial(64, i * 8 + k)
                        va = T.axis.spatial(128, a)
                        A_shared[vi, va] = A[vi, va]
                with T.block("B"):
                    vi = T.axis.spatial(64, i * 8 + k)
                    vj = T.axis.spatial(128, j)
                    B[vi, vj] = A_shared[vi, 127 - vj]
# CHECK: for blockIdx_x in T.thread_binding(8, thread="blockIdx.x"):
# CHECK-NEXT: for threadIdx_x in T.thread_binding(128, thread="threadIdx.x"):
# CHECK-NEXT: for k in range(8):
# CHECK-NEXT: T.allocate((1, 128), "float32", "shared") as A_shared
# CHECK-NEXT: T.evaluate(T.barrier())
# CHECK-NEXT: A_shared[0, threadIdx_x] = A[blockIdx_x * 8 + k, threadIdx_x]
# CHECK-NEXT: T.evaluate(T.barrier())
# CHECK-NEXT: B[blockIdx_x * 8 + k, threadIdx_x] = A_shared[0, 127 - threadIdx_x]
# CHECK-NOT: barrier

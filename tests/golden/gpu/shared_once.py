# RUN: --target cuda:sm_80 --stage lowered
# The threads of a block share one buffer in all iterations of an unrolled loop.
@T.prim_func
def main(A: T.Buffer((16, 128), "float32"), B: T.Buffer((16, 128), "float32")):
    A_shared = T.alloc_buffer((16, 128), scope="shared")
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for j in T.thread_binding(128, thread="threadIdx.x"):
            for k in T.unroll(2):
                for a in T.thread_binding(128, thread="threadIdx.x"):
                    with T.block("A_shared"):
                        vi = T.axis.spatial(16, i * 2 + k)
                        va = T.axis.spatial(128, a)
                        A_shared[vi, va] = A[vi, va]
                with T.block("B"):
                    vi = T.axis.spatial(16, i * 2 + k)
                    vj = T.axis.spatial(128, j)
                    B[vi, vj] = A_shared[vi, 127 - vj]
# CHECK: T.allocate((128,), "float32", "shared") as A_shared
# CHECK-NOT: "shared"
# CHECK: A_shared[threadIdx_x] = A[
# CHECK-NEXT: T.evaluate(T.barrier())
# CHECK-NEXT: B[{{.*}}] = A_shared[127 - threadIdx_x]
# CHECK-NEXT: T.evaluate(T.barrier())
# CHECK-NEXT: A_shared[threadIdx_x] = A[
# CHECK-NEXT: T.evaluate(T.barrier())
# CHECK-NEXT: B[{{.*}}] = A_shared[127 - threadIdx_x]
# CHECK-NOT: barrier

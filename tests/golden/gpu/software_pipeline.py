# RUN: --target cuda:sm_80 --stage barriers
# Fetches are two iterations ahead, in three copies of the buffer: one barrier
# in an iteration, after the wait, and none between fetch and use.
@T.prim_func
def main(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64, 128), "float32")):
    A_shared = T.alloc_buffer((64, 128), scope="shared")
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for j in T.thread_binding(128, thread="threadIdx.x"):
            for k in T.serial(32, annotations={"software_pipeline_stage": [0, 2], "software_pipeline_order": [0, 1], "software_pipeline_async_stages": [0]}):
                for a in T.thread_binding(128, thread="threadIdx.x"):
                    with T.block("A_shared"):
                        vi = T.axis.spatial(64, i * 32 + k)
                        va = T.axis.spatial(128, a)
                        A_shared[vi, va] = A[vi, va]
                with T.block("B"):
                    vi = T.axis.spatial(64, i * 32 + k)
                    vj = T.axis.spatial(128, j)
                    B[vi, vj] = A_shared[vi, 127 - vj]
# CHECK: A_shared[0, 0, threadIdx_x] = T.async(A[blockIdx_x * 32, threadIdx_x])
# CHECK-NEXT: T.evaluate(T.commit())
# CHECK-NEXT: A_shared[1, 0, threadIdx_x] = T.async(A[blockIdx_x * 32 + 1, threadIdx_x])
# CHECK-NEXT: T.evaluate(T.commit())
# CHECK: for k in range(32):
# CHECK-NEXT: T.evaluate(T.wait(1))
# CHECK-NEXT: T.evaluate(T.barrier())
# CHECK-NEXT: if k < 30:
# CHECK-NEXT: A_shared[(k + 2) % 3, 0, threadIdx_x] = T.async(A[blockIdx_x * 32 + k + 2, threadIdx_x])
# CHECK-NEXT: T.evaluate(T.commit())
# CHECK-NEXT: B[blockIdx_x * 32 + k, threadIdx_x] = A_shared[k % 3, 0, 127 - threadIdx_x]
# CHECK-NOT: barrier

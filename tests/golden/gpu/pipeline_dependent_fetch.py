# RUN: --target sim:sm_75 --stage pipeline
# A fetch that reads what another one has fetched: only the second one is
# divided, as the first must have stored before.
@T.prim_func
def main(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64, 128), "float32")):
    First = T.alloc_buffer((64, 128), scope="shared")
    Second = T.alloc_buffer((64, 128), scope="shared")
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for j in T.thread_binding(128, thread="threadIdx.x"):
            for k in T.serial(32, annotations={"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2]}):
                for a in T.thread_binding(128, thread="threadIdx.x"):
                    with T.block("First"):
                        vi = T.axis.spatial(64, i * 32 + k)
                        va = T.axis.spatial(128, a)
                        First[vi, va] = A[vi, va]
                for a in T.thread_binding(128, thread="threadIdx.x"):
                    with T.block("Second"):
                        vi = T.axis.spatial(64, i * 32 + k)
                        va = T.axis.spatial(128, a)
                        Second[vi, va] = First[vi, va] * T.float32(2)
                with T.block("B"):
                    vi = T.axis.spatial(64, i * 32 + k)
                    vj = T.axis.spatial(128, j)
                    B[vi, vj] = Second[vi, 127 - vj]
# CHECK: for k in range(32):
# CHECK: if k < 31:
# CHECK-NEXT: First[(k + 1) % 2, 0, threadIdx_x] = A[blockIdx_x * 32 + k + 1, threadIdx_x]
# CHECK-NEXT: fetched[0] = First[(k + 1) % 2, 0, threadIdx_x]
# CHECK: B[blockIdx_x * 32 + k, threadIdx_x]
# CHECK: Second[(k + 1) % 2, 0, threadIdx_x] = fetched[0]

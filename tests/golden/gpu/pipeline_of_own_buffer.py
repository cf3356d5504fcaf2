# RUN: --target cuda:sm_80 --stage pipeline
# Y is written anew by each iteration of a: no copy into it may be on its way
# then. X is read in the next stage.
@T.prim_func
def main(A: T.Buffer((8, 4, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    X = T.alloc_buffer((8, 32), scope="shared")
    Y = T.alloc_buffer((8, 4, 32), scope="shared")
    for i in T.thread_binding(1, thread="blockIdx.x"):
        for k in T.serial(8, annotations={"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2], "software_pipeline_async_stages": [0]}):
            for a in range(4):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("Y"):
                        vk, va, vt = T.axis.remap("SSS", [k, a, t])
                        Y[vk, va, vt] = A[vk, va, vt]
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("X"):
                    vk, vt = T.axis.remap("SS", [k, t])
                    X[vk, vt] = A[vk, 0, vt]
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    vk, vt = T.axis.remap("SS", [k, t])
                    B[vk, vt] = X[vk, vt]
# CHECK-NOT: Y{{.*}} = T.async
# CHECK: X{{.*}} = T.async
# CHECK-NOT: Y{{.*}} = T.async

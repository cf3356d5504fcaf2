# RUN-FAIL: --target cuda:sm_80 --stage pipeline
@T.prim_func
def main(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64, 128), "float32")):
    A_shared = T.alloc_buffer((64, 128), scope="shared")
    for j in T.thread_binding(128, thread="threadIdx.x"):
        for k in T.serial(64, annotations={"software_pipeline_stage": [0, 1, 2]}):
            with T.block("A_shared"):
                vk, vj = T.axis.remap("SS", [k, j])
                A_shared[vk, vj] = A[vk, vj]
            with T.block("B"):
                vk, vj = T.axis.remap("SS", [k, j])
                B[vk, vj] = A_shared[vk, vj]
# CHECK: loop k: software pipeline: it has 2 statements, but stages of 3

# RUN-FAIL: --target cuda:sm_80 --stage asm
# What a thread has alone is more than there is room for, with a copy for each
# stage of the pipeline.
@T.prim_func
def main(A: T.Buffer((32, 4, 12000), "float32"), B: T.Buffer((32, 4), "float32")):
    L = T.alloc_buffer((32, 4, 12000), "float32", scope="local")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        for k in T.serial(4, annotations={"software_pipeline_stage": [0, 2], "software_pipeline_order": [0, 1]}):
            for j in range(12000):
                with T.block("L"):
                    vt, vk, vj = T.axis.remap("SSS", [t, k, j])
                    L[vt, vk, vj] = A[vt, vk, vj]
            with T.block("B"):
                vt, vk = T.axis.remap("SS", [t, k])
                B[vt, vk] = L[vt, vk, 7] + L[vt, vk, 11999]
# CHECK: a thread has 144000 bytes of buffers of its own; it may have 131072

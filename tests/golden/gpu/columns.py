# RUN: --target cuda:sm_90a --default --stage lowered
# The product of a vector and a matrix whose rows are along the outputs: lanes
# of a warp read side by side, several threads share the terms of a column, and
# one adds their parts, then the bias.
@T.prim_func
def main(A: T.Buffer((1, 1024), "float32"), B: T.Buffer((1024, 512), "float32"),
         bias: T.Buffer((512,), "float32"), D: T.Buffer((1, 512), "float32")):
    C = T.alloc_buffer((1, 512), "float32")
    for i, j, k in T.grid(1, 512, 1024):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(1, 512):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] + bias[vj]
# CHECK: T.thread_binding(64, thread="blockIdx.x"
# CHECK: T.thread_binding(64, thread="threadIdx.y"
# CHECK: T.allocate((512,), "float32", "shared") as C_rf_shared
# CHECK: B[
# CHECK-SAME: threadIdx_x
# CHECK: C_rf_shared[
# CHECK: T.barrier()
# CHECK: if threadIdx_y < 1
# CHECK: D[
# CHECK-NOT: thread="blockIdx.x"

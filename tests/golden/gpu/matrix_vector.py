# RUN: --target cuda:sm_80 --default --stage lowered
# The product of a matrix and a vector reads each element of the matrix once: the
# threads of a block share a row, and add the bias to its sum.
@T.prim_func
def main(A: T.Buffer((1, 256), "float32"), B: T.Buffer((100, 256), "float32"),
         bias: T.Buffer((100,), "float32"), D: T.Buffer((1, 100), "float32")):
    C = T.alloc_buffer((1, 100), "float32")
    for i, j, k in T.grid(1, 100, 256):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
    for i, j in T.grid(1, 100):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] + bias[vj]
# CHECK: T.thread_binding(100, thread="blockIdx.x")
# CHECK: B[blockIdx_x * 256
# CHECK: D[blockIdx_x]
# CHECK-NOT: thread="blockIdx.x"

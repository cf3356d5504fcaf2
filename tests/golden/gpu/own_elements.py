# RUN: --target cuda:sm_80 --stage barriers
# Each thread reads what it wrote itself: no barrier.
@T.prim_func
def main(A: T.Buffer((8, 128), "float32"), B: T.Buffer((8, 128), "float32")):
    A_shared = T.alloc_buffer((8, 128), scope="shared")
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for j in T.thread_binding(128, thread="threadIdx.x"):
            with T.block("A_shared"):
                vi, vj = T.axis.remap("SS", [i, j])
                A_shared[vi, vj] = A[vi, vj]
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A_shared[vi, vj] * T.float32(2)
# CHECK: A_shared[0, threadIdx_x] = A[blockIdx_x, threadIdx_x]
# CHECK-NEXT: B[blockIdx_x, threadIdx_x] = A_shared[0, threadIdx_x] * T.float32(2.0)
# CHECK-NOT: barrier

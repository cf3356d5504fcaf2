# RUN: --target cuda:sm_80 --stage threads
# Virtual threads are unrolled; each has a register, without the gap between
# their elements.
@T.prim_func
def main(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    L = T.alloc_buffer((1024,), scope="local")
    for b in T.thread_binding(8, thread="blockIdx.x"):
        for v in T.thread_binding(2, thread="vthread"):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("L"):
                    vi = T.axis.spatial(1024, b * 128 + v * 64 + t)
                    L[vi] = A[vi]
                with T.block("B"):
                    vi = T.axis.spatial(1024, b * 128 + v * 64 + t)
                    B[vi] = L[vi] + T.float32(1)
# CHECK: T.allocate((2,), "float32", "local") as L
# CHECK-NEXT: for v in T.unroll(2):
# CHECK-NEXT: L[v] = A[blockIdx_x * 128 + v * 64 + threadIdx_x]
# CHECK: for v in T.unroll(2):
# CHECK: B[blockIdx_x * 128 + v * 64 + threadIdx_x] = L[v] + T.float32(1.0)

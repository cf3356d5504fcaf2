# RUN: --target opencl:generic --stage barriers
# Without shuffles 64 threads add pairs in local memory; the last pair is added
# by each thread.
@T.prim_func
def main(A: T.Buffer((8, 256), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for k_0 in range(4):
            for k_1 in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    vk = T.axis.reduce(256, k_0 * 64 + k_1)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
# CHECK: B_partials[threadIdx_x] = B_partial[0]
# CHECK-NEXT: T.evaluate(T.barrier())
# CHECK-NEXT: if threadIdx_x < 32:
# CHECK-NEXT: B_partials[threadIdx_x] = B_partials[threadIdx_x] + B_partials[threadIdx_x + 32]
# CHECK-NEXT: T.evaluate(T.barrier())
# CHECK-NEXT: if threadIdx_x < 16:
# CHECK: if threadIdx_x < 2:
# CHECK-NEXT: B_partials[threadIdx_x] = B_partials[threadIdx_x] + B_partials[threadIdx_x + 2]
# CHECK-NEXT: T.evaluate(T.barrier())
# CHECK-NEXT: B_partial[0] = B_partials[0] + B_partials[1]
# CHECK-NEXT: if threadIdx_x == 0:
# CHECK-NOT: shuffle

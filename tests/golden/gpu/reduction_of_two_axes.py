# RUN: --target cuda:sm_80 --stage barriers
# Threads sum 6 x 6 elements of each row together: the sum begins before them,
# though its first element is where both x // 6 and x % 6 are 0.
@T.prim_func
def main(A: T.Buffer((4, 6, 6), "float32"), B: T.Buffer((4,), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for k in range(2):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(4, b)
                    vk0 = T.axis.reduce(6, (k * 32 + t) // 6)
                    vk1 = T.axis.reduce(6, (k * 32 + t) % 6)
                    T.where(k * 32 + t < 36)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk0, vk1]
# CHECK: if threadIdx_x == 0:
# CHECK-NEXT: B[blockIdx_x] = T.float32(0.0)
# CHECK: shuffle_xor

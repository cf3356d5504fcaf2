# RUN: --target cuda:sm_80 --stage barriers
# RUN: --target opencl:generic --stage barriers | --check-prefix=PAIRS
# 64 threads sum a row: shuffles within both warps, then shared memory. Without
# shuffles they add pairs there; the last pair is added by each thread.
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
# CHECK: T.shuffle_xor(B_partial[0], 16, 32)
# CHECK-NEXT: T.shuffle_xor(B_partial[0], 8, 32)
# CHECK-NEXT: T.shuffle_xor(B_partial[0], 4, 32)
# CHECK-NEXT: T.shuffle_xor(B_partial[0], 2, 32)
# CHECK-NEXT: T.shuffle_xor(B_partial[0], 1, 32)
# CHECK: if threadIdx_x % 32 == 0:
# CHECK-NEXT: B_partials[threadIdx_x // 32] = B_partial[0]
# CHECK: T.evaluate(T.barrier())
# CHECK-NEXT: for group in range(2):
# CHECK: if threadIdx_x == 0:
# PAIRS: B_partials[threadIdx_x] = B_partial[0]
# PAIRS-NEXT: T.evaluate(T.barrier())
# PAIRS-NEXT: if threadIdx_x < 32:
# PAIRS-NEXT: B_partials[threadIdx_x] = B_partials[threadIdx_x] + B_partials[threadIdx_x + 32]
# PAIRS-NEXT: T.evaluate(T.barrier())
# PAIRS-NEXT: if threadIdx_x < 16:
# PAIRS: if threadIdx_x < 2:
# PAIRS-NEXT: B_partials[threadIdx_x] = B_partials[threadIdx_x] + B_partials[threadIdx_x + 2]
# PAIRS-NEXT: T.evaluate(T.barrier())
# PAIRS-NEXT: B_partial[0] = B_partials[0] + B_partials[1]
# PAIRS-NEXT: if threadIdx_x == 0:
# PAIRS-NOT: shuffle

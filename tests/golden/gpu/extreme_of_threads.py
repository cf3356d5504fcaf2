# RUN: --target cuda:sm_80 --stage threads
# Threads find the largest element and where it is together. All lanes take part
# in a shuffle, whichever of both they then keep; what is found is stored after
# both are.
@T.prim_func
def main(A: T.Buffer((8, 256), "float32"), I: T.Buffer((8,), "int32"), M: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for k_0 in range(4):
            for k_1 in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("M"):
                    vi = T.axis.spatial(8, i)
                    vk = T.axis.reduce(256, k_0 * 64 + k_1)
                    with T.init():
                        I[vi] = T.int32(-1)
                        M[vi] = T.float32("-inf")
                    x: T.let[T.int32] = T.Select(M[vi] > A[vi, vk] or M[vi] == A[vi, vk] and I[vi] < vk, I[vi], vk)
                    y: T.let[T.float32] = T.Select(M[vi] > A[vi, vk], M[vi], A[vi, vk])
                    I[vi] = x
                    M[vi] = y
# CHECK: I_partial[0] = T.int32(2147483647)
# CHECK-NEXT: M_partial[0] = T.float32("-inf")
# CHECK: with T.LetStmt(T.shuffle_xor(I_partial[0], 16, 32)) as [[I:.*]]:
# CHECK-NEXT: with T.LetStmt(T.shuffle_xor(M_partial[0], 16, 32)) as [[M:.*]]:
# CHECK-NEXT: with T.LetStmt(T.Select(M_partial[0] > [[M]] or M_partial[0] == [[M]] and I_partial[0] < [[I]], I_partial[0], [[I]])) as [[NEW_I:.*]]:
# CHECK-NEXT: with T.LetStmt(T.Select(M_partial[0] > [[M]], M_partial[0], [[M]])) as [[NEW_M:.*]]:
# CHECK-NEXT: I_partial[0] = [[NEW_I]]
# CHECK-NEXT: M_partial[0] = [[NEW_M]]
# CHECK: if threadIdx_x % 32 == 0:
# CHECK-NEXT: I_partials[threadIdx_x // 32] = I_partial[0]
# CHECK-NEXT: M_partials[threadIdx_x // 32] = M_partial[0]
# CHECK: for group in range(2):
# CHECK: if threadIdx_x == 0:

# RUN: --target cuda:sm_80 --stage threads
# Threads along y exchange their parts of sums: those of a warp, which are along
# x, are side by side in shared memory, in different banks.
@T.prim_func
def main(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for x in T.thread_binding(32, thread="threadIdx.x"):
            for y in T.thread_binding(8, thread="threadIdx.y"):
                for k in range(8):
                    with T.block("B"):
                        vj = T.axis.spatial(32, x)
                        vk = T.axis.reduce(64, k * 8 + y)
                        with T.init():
                            B[vj] = T.float32(0)
                        B[vj] = B[vj] + A[vk, vj]
# CHECK: T.allocate((8, 32), "float32", "shared") as B_partials
# CHECK: B_partials[threadIdx_y, threadIdx_x] =
# CHECK: + B_partials[group, threadIdx_x]

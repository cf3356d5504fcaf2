# RUN-FAIL: --target cuda:sm_80 --stage threads
# What a thread adds depends on what the others have added.
@T.prim_func
def main(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for k in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(64, k)
                with T.init():
                    B[vi] = T.float32(0)
                x = B[vi] * T.float32(0.5)
                B[vi] = B[vi] + (A[vi, vk] - x)
# CHECK: loop k is bound to threadIdx.x: its threads write the same element of B

# RUN: --target cuda:sm_80 --stage barriers
# The only thread that writes is the one that reads: no barrier, which would be
# where the others do not arrive.
@T.prim_func
def main(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "float32")):
    S = T.alloc_buffer((1,), "float32")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for k in range(1):
                with T.block("S"):
                    vi = T.axis.spatial(1, t)
                    vk = T.axis.reduce(1, k)
                    T.where(t < 1)
                    with T.init():
                        S[vi] = T.float32(0)
                    S[vi] = S[vi] + A[vk]
            with T.block("B"):
                vi = T.axis.spatial(1, t)
                T.where(t < 1)
                B[vi] = S[vi] * T.float32(2)
# CHECK: if threadIdx_x < 1:
# CHECK-NOT: barrier
# CHECK: B[0] = S[0]

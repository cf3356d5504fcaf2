# RUN-FAIL: --target cuda:sm_80 --stage threads
# Each thread needs a maximum that all find together, and the first one gets.
@T.prim_func
def main(A: T.Buffer((10, 13), "float32"), E: T.Buffer((10, 13), "float32")):
    M = T.alloc_buffer((10,), "float32")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in range(10):
            for t in T.thread_binding(32, thread="threadIdx.y"):
                for k in T.thread_binding(32, thread="threadIdx.y"):
                    with T.block("M"):
                        vi = T.axis.spatial(10, i)
                        vk = T.axis.reduce(13, k)
                        T.where(k < 13)
                        with T.init():
                            M[vi] = T.float32(-3.4028234663852886e+38)
                        M[vi] = T.max(M[vi], A[vi, vk])
                with T.block("E"):
                    vi = T.axis.spatial(10, i)
                    vj = T.axis.spatial(13, t)
                    T.where(t < 13)
                    E[vi, vj] = T.exp(A[vi, vj] - M[vi])
# CHECK: buffer M: each thread of threadIdx.y has its own, which a loop that is bound to this axis divides anew

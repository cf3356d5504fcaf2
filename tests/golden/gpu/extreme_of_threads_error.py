# RUN-FAIL: --target cuda:sm_80 --stage threads
# Which of equal elements is found depends on the order of the threads.
@T.prim_func
def main(A: T.Buffer((8, 64), "float32"), I: T.Buffer((8,), "int32"), M: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for k in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("M"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(64, k)
                with T.init():
                    I[vi] = T.int32(-1)
                    M[vi] = T.float32("-inf")
                x: T.let[T.int32] = T.Select(M[vi] >= A[vi, vk], I[vi], vk)
                y: T.let[T.float32] = T.Select(M[vi] >= A[vi, vk], M[vi], A[vi, vk])
                I[vi] = x
                M[vi] = y
# CHECK: loop k is bound to threadIdx.x: its threads write the same element of I, and not by a sum, product, minimum or maximum of that element alone, nor by a choice whose order does not matter

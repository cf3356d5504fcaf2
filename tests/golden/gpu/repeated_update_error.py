# Every thread would add its term to what another one has added.
# RUN-FAIL: --target cuda:sm_80 --stage threads
@T.prim_func
def main(A: T.Buffer((8, 4), "int64"), B: T.Buffer((8,), "int64")):
    S = T.alloc_buffer((8,), "int64", scope="shared")
    L = T.alloc_buffer((8,), "int64", scope="local")
    for i in range(8):
        for k in range(2):
            for t in T.thread_binding(2, thread="threadIdx.y"):
                with T.block("L"):
                    vi = T.axis.spatial(8, i)
                    L[vi] = A[vi, 2]
                with T.block("S"):
                    vi = T.axis.spatial(8, i)
                    vk = T.axis.reduce(4, k * 2 + t)
                    with T.init():
                        S[vi] = T.int64(0)
                    S[vi] = S[vi] + (A[vi, 1] + L[vi])
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = S[vi]
# CHECK: loop t is bound to threadIdx.y: its threads write the same element of S, and not by a sum

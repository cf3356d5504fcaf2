# The threads of one loop cannot be those of another one at the same time.
# RUN-FAIL: --target cuda:sm_80 --stage threads
@T.prim_func
def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    S = T.alloc_buffer((4, 8), "float32")
    for z in T.thread_binding(4, thread="threadIdx.z"):
        with T.block("S0"):
            v = T.axis.spatial(4, z)
            S[v, 0] = A[v, 3]
        for w in T.thread_binding(4, thread="threadIdx.z"):
            with T.block("S1"):
                v = T.axis.spatial(4, z)
                vw = T.axis.spatial(4, w)
                S[v, vw + 1] = A[vw, 7]
        for k in T.thread_binding(16, thread="threadIdx.y"):
            with T.block("B"):
                v = T.axis.spatial(4, z)
                vk = T.axis.spatial(16, k)
                B[v, vk] = S[v, vk % 5]
# CHECK: loops z and w are bound to threadIdx.z one inside the other, and the inner one uses the outer one's iteration

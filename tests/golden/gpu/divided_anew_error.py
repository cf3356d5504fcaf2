# Each thread has an S of its own, in which a loop inside has other threads
# store.
# RUN-FAIL: --target cuda:sm_80 --stage threads
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for z in T.thread_binding(4, thread="threadIdx.z"):
        with T.block("own"):
            v = T.axis.spatial(4, z)
            S = T.alloc_buffer((8,), "float32")
            for i in range(4):
                S[i] = A[v, i]
            for w in T.thread_binding(4, thread="threadIdx.z"):
                S[w + 4] = A[w, 3]
            for i in range(4):
                B[v, i] = S[i] + S[i + 4]
# CHECK: buffer S: each thread of threadIdx.z has its own, which a loop that is bound to this axis divides anew

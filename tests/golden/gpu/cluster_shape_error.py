# RUN-FAIL: --target cuda:sm_90a --stage threads
@T.prim_func
def main(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    P = T.alloc_buffer((8, 32), "float32", scope="shared.cluster")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for q in range(2):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("P"):
                        vp = T.axis.spatial(8, q * 4 + p)
                        vt = T.axis.spatial(32, t)
                        P[vp, vt] = A[vp, vt]
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for q in range(2):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("B"):
                        vp = T.axis.spatial(8, q * 4 + p)
                        vt = T.axis.spatial(32, t)
                        B[vp, vt] = P[7 - vp, vt]
# CHECK: buffer P of the scope shared.cluster has parts of 8 blocks; a cluster has 4

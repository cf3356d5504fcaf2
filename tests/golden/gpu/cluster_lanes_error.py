# RUN-FAIL: --target cuda:sm_90a --stage lowered
@T.prim_func
def main(A: T.Buffer((4, 32), "float32"), B: T.Buffer((32, 4), "float32")):
    P = T.alloc_buffer((4, 32), "float32", scope="shared.cluster")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("P"):
                    vp, vt = T.axis.remap("SS", [p, t])
                    P[vp, vt] = A[vp, vt]
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for q in T.vectorized(4):
                with T.block("B"):
                    vq, vt = T.axis.remap("SS", [q, t])
                    B[vt, vq] = P[vq, vt]
# CHECK: lanes of one access to P may be of different blocks of the cluster

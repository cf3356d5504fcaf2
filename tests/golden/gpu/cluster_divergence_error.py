# RUN-FAIL: --target cuda:sm_90a --stage barriers
# All blocks of the cluster would have to wait in the rounds, in which two are.
@T.prim_func
def main(A: T.Buffer((16, 4, 32), "float32"), B: T.Buffer((16, 4, 32), "float32")):
    P = T.alloc_buffer((4, 32), "float32", scope="shared.cluster")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for q in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("P"):
                    vq, vt = T.axis.remap("SS", [q, t])
                    P[vq, vt] = A[0, vq, vt]
        for p in T.thread_binding(2, thread="clusterCtaIdx.x"):
            for r in range(16):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("B"):
                        vr, vp, vt = T.axis.remap("SSS", [r, p, t])
                        B[vr, vp, vt] = P[3 - vp, 31 - vt]
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("again"):
                        vr, vp, vt = T.axis.remap("OSS", [r, p, t])
                        P[vp, vt] = A[vr, vp, vt]
# CHECK: threads exchange values where not all of a cluster's blocks arrive

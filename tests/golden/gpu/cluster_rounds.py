# RUN: --target cuda:sm_90a --stage lowered
# A block overwrites its part when all blocks have read it: two barriers of the
# cluster in each round. Its own threads need no others.
@T.prim_func
def main(A: T.Buffer((16, 4, 32), "float32"), B: T.Buffer((16, 4, 32), "float32")):
    P = T.alloc_buffer((4, 32), "float32", scope="shared.cluster")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for r in range(16):
            for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("P"):
                        vr, vp, vt = T.axis.remap("OSS", [r, p, t])
                        P[vp, vt] = A[vr, vp, vt]
            for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("B"):
                        vr, vp, vt = T.axis.remap("SSS", [r, p, t])
                        B[vr, vp, vt] = P[(vp + 1) % 4, 31 - vt]
# CHECK: for r in range(16):
# CHECK: T.evaluate(T.cluster_barrier())
# CHECK: P[threadIdx_x] = A[
# CHECK: T.evaluate(T.cluster_barrier())
# CHECK: T.cluster_load(P[31 - threadIdx_x], (clusterCtaIdx_x + 1) % 4)
# CHECK: T.evaluate(T.cluster_barrier())
# CHECK-NOT: barrier

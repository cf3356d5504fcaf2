# RUN: --target cuda:sm_90a --stage barriers
# What the threads of a block read of their own block alone waits for these.
@T.prim_func
def main(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
    P = T.alloc_buffer((4, 32), "float32", scope="shared.cluster")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("P"):
                    vp, vt = T.axis.remap("SS", [p, t])
                    P[vp, vt] = A[vp, vt]
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    vp, vt = T.axis.remap("SS", [p, t])
                    B[vp, vt] = P[vp, 31 - vt]
# CHECK: T.evaluate(T.barrier())
# CHECK-NOT: cluster_barrier

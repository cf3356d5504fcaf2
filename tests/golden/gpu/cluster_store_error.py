# RUN-FAIL: --target cuda:sm_90a --stage threads
@T.prim_func
def main(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
    P = T.alloc_buffer((4, 32), "float32", scope="shared.cluster")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for q in range(4):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("P"):
                    vq, vt = T.axis.remap("SS", [q, t])
                    P[vq, vt] = A[vq, vt]
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    vp, vt = T.axis.remap("SS", [p, t])
                    B[vp, vt] = P[vp, vt]
# CHECK: a block of a cluster writes its own part of P alone: the first index must be the loop that is bound to clusterCtaIdx.x

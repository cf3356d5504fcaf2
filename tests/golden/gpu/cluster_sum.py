# RUN: --target cuda:sm_90a --stage lowered
# The blocks of a cluster read each other's parts after all have written them, and
# end when all have read. A block's own part is what it allocates.
@T.prim_func
def main(A: T.Buffer((8, 4096), "float32"), B: T.Buffer((8, 4), "float32")):
    P = T.alloc_buffer((4, 8), "float32", scope="shared.cluster")
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                for k in range(32):
                    with T.block("P"):
                        vp = T.axis.spatial(4, p)
                        vi = T.axis.spatial(8, i)
                        vk = T.axis.reduce(1024, t * 32 + k)
                        with T.init():
                            P[vp, vi] = T.float32(0)
                        P[vp, vi] = P[vp, vi] + A[vi, vp * 1024 + vk]
        for q in T.thread_binding(4, thread="clusterCtaIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                vq = T.axis.spatial(4, q)
                B[vi, vq] = P[3 - vq, vi] / P[vq, vi]
# CHECK: T.allocate((1,), "float32", "shared") as P
# CHECK: T.evaluate(T.cluster_barrier())
# CHECK: T.cluster_load(P[0], 3 - clusterCtaIdx_x) / P[0]
# CHECK: T.evaluate(T.cluster_barrier())
# CHECK-NOT: barrier

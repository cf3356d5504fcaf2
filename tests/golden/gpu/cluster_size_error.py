# RUN-FAIL: --target cuda:sm_80 --stage threads
@T.prim_func
def main(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
    for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                vp, vt = T.axis.remap("SS", [p, t])
                B[vp, vt] = A[vp, vt]
# CHECK: clusterCtaIdx.x has 4 iterations; a GPU can have 1

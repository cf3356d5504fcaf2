# RUN: --target cuda:sm_80 --stage vectorize
# The lanes of a vectorized loop wait together for what one thread fetches.
@T.prim_func
def main(A: T.Buffer((12, 4), "float32"), B: T.Buffer((12, 4), "float32")):
    S = T.alloc_buffer((12, 4), "float32", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for r in range(3):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                for k in range(4):
                    for v in T.vectorized(4):
                        for f in range(125):
                            with T.block("S"):
                                vf = T.axis.spatial(12, r * 128 + k + f)
                                vv = T.axis.spatial(4, v)
                                T.where(r * 128 + k + f < 12)
                                S[vf, vv] = A[vf, vv]
                        with T.block("B"):
                            vt = T.axis.spatial(12, r * 128 + t * 4 + k)
                            vv = T.axis.spatial(4, v)
                            T.where(r * 128 + t * 4 + k < 12)
                            B[vt, vv] = S[vt, vv]
# CHECK: S[T.Ramp({{.*}}, 1, 4)] = A[T.Ramp({{.*}}, 1, 4)]
# CHECK-NEXT: T.evaluate(T.barrier())
# CHECK-NEXT: if {{.*}} < 12:
# CHECK-NEXT: B[T.Ramp({{.*}}, 1, 4)] = S[T.Ramp({{.*}}, 1, 4)]

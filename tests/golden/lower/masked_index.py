# The index is the same in all lanes, and read where a lane has an element.
# RUN: --target cuda:sm_80 --stage lowered
@T.prim_func
def main(A: T.Buffer((12,), "int32"), B: T.Buffer((3,), "float32"), C: T.Buffer((12,), "float32")):
    for t in T.thread_binding(256, thread="threadIdx.x"):
        for l in T.vectorized(4):
            with T.block("C"):
                v = T.axis.spatial(12, t * 4 + l)
                T.where(t * 4 + l < 11)
                C[v] = B[T.min(T.max(T.Cast("int64", A[v // 4 * 5]), 0), 2)]
# CHECK: A.vload([T.Broadcast(threadIdx_x * 5, 2)], predicate=T.Ramp(threadIdx_x * 4, 1, 2) < T.Broadcast(9, 2))

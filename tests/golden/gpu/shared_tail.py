# RUN: --target cuda:sm_80 --stage allocate
# Blocks fetch 32 of 67 elements each; more threads than 32 take part, and the
# limit of 67 follows from the others: the fetch stays in shared memory.
@T.prim_func
def main(A: T.Buffer((67,), "float32"), B: T.Buffer((67,), "float32")):
    A_shared = T.alloc_buffer((67,), scope="shared")
    for i in T.thread_binding(3, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("A_shared"):
                vi = T.axis.spatial(67, i * 32 + t)
                T.where(i * 32 + t % 32 < 67 and t < 32)
                if vi < 67:
                    A_shared[vi] = T.if_then_else(vi < 67, A[vi], T.float32(0))
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(67, i * 32 + t)
                T.where(i * 32 + t < 67)
                B[vi] = A_shared[vi] * T.float32(2)
# CHECK: "float32", "shared") as A_shared

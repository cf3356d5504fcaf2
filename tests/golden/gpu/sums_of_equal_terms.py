# Lowering writes S + (a + b) as S + a + b; all of it but S is the term.
# RUN: --target cuda:sm_80 --stage threads
@T.prim_func
def main(A: T.Buffer((8, 4), "int64"), B: T.Buffer((8,), "int64")):
    S = T.alloc_buffer((8,), "int64", scope="shared")
    for i in range(8):
        for t in T.thread_binding(2, thread="threadIdx.y"):
            with T.block("S"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(2, t)
                with T.init():
                    S[vi] = T.int64(0)
                S[vi] = S[vi] + (A[vi, 1] - 5)
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = S[vi]
# CHECK: S_partial[0] = S_partial[0] + A[i, 1] - 5
# CHECK: if threadIdx_y == 0:
# CHECK-NEXT: S[0] = S[0] + S_partial[0]

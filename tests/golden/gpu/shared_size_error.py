# RUN-FAIL: --target cuda:sm_86 --stage threads
@T.prim_func
def main(A: T.Buffer((32768,), "float32"), B: T.Buffer((32768,), "float32")):
    S = T.alloc_buffer((32768,), scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in range(1024):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("S"):
                    vi = T.axis.spatial(32768, i * 32 + t)
                    S[vi] = A[vi]
        for i in range(1024):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(32768, i * 32 + t)
                    B[vi] = S[32767 - vi]
# CHECK: buffer S has 131072 bytes, shared by the threads of a block, which have 101376

# Shared memory has room for one block in a multiprocessor of sm_86.
# RUN: --target cuda:sm_86 --stage asm
@T.prim_func
def main(A: T.Buffer((2, 128, 128), "float32"), B: T.Buffer((2, 128, 128), "float32")):
    S = T.alloc_buffer((2, 128, 128), "float32", scope="shared")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(128, thread="threadIdx.x"):
            for i in range(128):
                with T.block("S"):
                    vb, vi, vt = T.axis.remap("SSS", [b, i, t])
                    S[vb, vi, vt] = A[vb, vi, vt]
        for t in T.thread_binding(128, thread="threadIdx.x"):
            for i in range(128):
                with T.block("B"):
                    vb, vi, vt = T.axis.remap("SSS", [b, i, t])
                    B[vb, vt, vi] = S[vb, vt, vi]
# CHECK: .maxntid 128, 1, 1
# CHECK-NEXT: .minnctapersm 1

# RUN-FAIL: --target opencl:generic --stage llvm
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(64, t)
            B[v] = A[v]
# CHECK: OpenCL C is not made by LLVM; its text is the assembly

# RUN: --target cuda:sm_80 --stage llvm
# Indices are computed in 32 bits where their ranges fit, those that cannot be
# negative without signs; of an array beyond 2^31, in 64.
@T.prim_func
def main(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32"),
         C: T.Buffer((8589934592,), "int8")):
    for i in T.thread_binding(64, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                vi, vt = T.axis.remap("SS", [i, t])
                B[vi * 64 + vt] = A[(vi * 64 + vt) // 7] + A[T.max(T.truncdiv(vt - 40, 3), 0)]
            with T.block("C"):
                vi, vt = T.axis.remap("SS", [i, t])
                C[vi * 134217728 + vt * 2097152] = T.int8(1)
# CHECK: udiv i32 {{.*}}, 7
# CHECK: sdiv i32 {{.*}}, 3
# CHECK-NOT: div i64
# CHECK: mul i64 {{.*}}, 134217728
# CHECK: mul nsw i32 {{.*}}, 2097152

# RUN: --target opencl:generic --stage asm
# Accesses stay vectors: by a pointer where they are aligned, by vload where
# they may not be, and as a choice where a condition holds for all lanes.
@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), H: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 60), "float32")):
    for i in T.thread_binding(64, thread="blockIdx.x"):
        for j in T.thread_binding(16, thread="threadIdx.x"):
            for v in T.vectorized(4):
                with T.block("B"):
                    vi = T.axis.spatial(64, i)
                    vj = T.axis.spatial(64, j * 4 + v)
                    B[vi, vj] = A[vi, vj] + T.Cast("float32", H[vi, vj])
    for i in T.thread_binding(64, thread="blockIdx.x"):
        for j in T.thread_binding(15, thread="threadIdx.x"):
            for v in T.vectorized(4):
                with T.block("C"):
                    vi = T.axis.spatial(64, i)
                    vj = T.axis.spatial(60, j * 4 + v)
                    C[vi, vj] = T.if_then_else(vi < 63, A[vi, vj + 1], T.float32(0))
# CHECK: __kernel __attribute__((reqd_work_group_size(16, 1, 1)))
# CHECK-NEXT: __global float* restrict B_, __global const float* restrict A_, __global const ushort* restrict H_)
# CHECK: const float4 t_ = *(const __global float4*)(A_ +
# CHECK-NEXT: const float4 t_2 = vload_half4(0, (const __global half*)(H_ +
# CHECK-NEXT: *(__global float4*)(B_ +
# CHECK: __kernel
# CHECK: < 63) ? vload4(0, A_ +
# CHECK-NEXT: *(__global float4*)(C_ +

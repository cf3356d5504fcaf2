# RUN: --target cuda:sm_80 --default --stage lowered
# A product with few outputs and many terms is computed in parts, with the sums
# of each in registers; a kernel of threads adds the parts, and the bias.
@T.prim_func
def main(A: T.Buffer((49, 1024), "float32"), B: T.Buffer((1024, 64), "float32"),
         bias: T.Buffer((64,), "float32"), D: T.Buffer((49, 64), "float32")):
    C = T.alloc_buffer((49, 64), "float32")
    for i, j, k in T.grid(49, 64, 1024):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(49, 64):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] + bias[vj]
# CHECK: T.allocate((50176,), "float32", "global") as C_rf
# CHECK: "shared") as B_shared
# CHECK: T.allocate({{.*}} as C_rf_local
# CHECK: C_rf_local[0] = T.float32(0.0)
# CHECK: T.thread_binding(256, thread="threadIdx.x")
# CHECK: T.allocate((1,), "float32", {{.*}}) as C_local
# CHECK: D[
# CHECK-NOT: blockIdx.x

# RUN: --target cuda:sm_90a --default --stage lowered
# The copy engine fetches the slice where it lies: one kernel.
@T.prim_func
def main(X: T.Buffer((2048, 768), "float16"), W: T.Buffer((256, 512), "float16"),
         C: T.Buffer((2048, 512), "float32")):
    A = T.alloc_buffer((2048, 256), "float16")
    for i, k in T.grid(2048, 256):
        with T.block("A"):
            vi, vk = T.axis.remap("SS", [i, k])
            A[vi, vk] = X[vi, vk + 256]
    for i, j, k in T.grid(2048, 512, 256):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", W[vk, vj])
# CHECK: thread="blockIdx.x"
# CHECK: T.copy_box(X[0]
# CHECK: T.store_box(
# CHECK-NOT: thread="blockIdx.x"

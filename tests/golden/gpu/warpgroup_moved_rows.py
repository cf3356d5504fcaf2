# RUN: --target cuda:sm_90a --default --stage lowered
# Rows of windows are no box of the image: a kernel moves them before the product.
@T.prim_func
def main(X: T.Buffer((64, 64, 256), "float16"), W: T.Buffer((256, 512), "float16"),
         C: T.Buffer((4096, 512), "float32")):
    A = T.alloc_buffer((4096, 256), "float16")
    for i, k in T.grid(4096, 256):
        with T.block("A"):
            vi, vk = T.axis.remap("SS", [i, k])
            A[vi, vk] = X[vi // 512 * 8 + vi % 64 // 8, vi % 512 // 64 * 8 + vi % 8, vk]
    for i, j, k in T.grid(4096, 512, 256):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", W[vk, vj])
# CHECK: thread="blockIdx.x"
# CHECK: A[{{.*}} = X[
# CHECK: thread="blockIdx.x"
# CHECK: T.copy_box(A[0]

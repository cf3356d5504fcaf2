# RUN: --target cuda:sm_90a --default --stage lowered
# The last tile of rows of X ends where X does: the copy engine fetches it, and
# zeros behind it.
@T.prim_func
def main(X: T.Buffer((1901, 256), "float16"), W: T.Buffer((256, 512), "float16"),
         C: T.Buffer((1900, 512), "float32")):
    A = T.alloc_buffer((1900, 256), "float16")
    for i, k in T.grid(1900, 256):
        with T.block("A"):
            vi, vk = T.axis.remap("SS", [i, k])
            A[vi, vk] = X[vi + 1, vk]
    for i, j, k in T.grid(1900, 512, 256):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", W[vk, vj])
# CHECK: T.copy_box(X[0]

# RUN: --target cuda:sm_90a --default --stage lowered
# Columns of a tile that belong to two heads are no box of the result: threads
# store their pairs.
@T.prim_func
def main(A: T.Buffer((4096, 256), "float16"), W: T.Buffer((256, 768), "float16"),
         C: T.Buffer((12, 4096, 64), "float16")):
    S = T.alloc_buffer((4096, 768), "float32")
    for i, j, k in T.grid(4096, 768, 256):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                S[vi, vj] = T.float32(0)
            S[vi, vj] = S[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", W[vk, vj])
    for h, i, j in T.grid(12, 4096, 64):
        with T.block("C"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            C[vh, vi, vj] = T.Cast("float16", S[vi, vh * 64 + vj])
# CHECK: thread="blockIdx.x"
# CHECK: T.warpgroup_product(
# CHECK-NOT: T.store_box(
# CHECK: C[T.Ramp({{.*}}, 1, 2)] =
# CHECK-NOT: {{store_box|thread="blockIdx.x"}}

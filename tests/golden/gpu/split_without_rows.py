# RUN: --target cuda:sm_90a --default --stage lowered
# Parts of 72 terms are not whole rows of boxes: beyond its end, a part has the
# next one's elements and no zeros. Other matrix units compute it.
@T.prim_func
def main(A: T.Buffer((1, 256, 288), "float16"), B: T.Buffer((1, 288, 128), "float16"),
         C: T.Buffer((1, 256, 128), "float32")):
    for b, i, j, k in T.grid(1, 256, 128, 288):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = T.float32(0)
            C[vb, vi, vj] = C[vb, vi, vj] + T.Cast("float32", A[vb, vi, vk]) * T.Cast("float32", B[vb, vk, vj])
# CHECK-NOT: warpgroup
# CHECK: T.warp_product(
# CHECK-NOT: warpgroup
# CHECK: C[

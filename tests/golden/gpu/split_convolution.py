# RUN: --target cuda:sm_80 --default --stage legalize
# A convolution of few positions is computed in parts, too, each as a product of
# matrices: the parts are not tiled, and the tiles' tail of 49 positions is
# written back to 7 rows of 7.
@T.prim_func
def main(A: T.Buffer((1, 7, 7, 512), "float32"),
         W: T.Buffer((64, 512, 1, 1), "float32"),
         C: T.Buffer((1, 7, 7, 64), "float32")):
    for n, y, x, f, c, u, v in T.grid(1, 7, 7, 64, 512, 1, 1):
        with T.block("C"):
            vn, vy, vx, vf, vc, vu, vv = T.axis.remap("SSSSRRR", [n, y, x, f, c, u, v])
            with T.init():
                C[vn, vy, vx, vf] = T.float32(0)
            C[vn, vy, vx, vf] = C[vn, vy, vx, vf] + A[vn, vy + vu, vx + vv, vc] * W[vf, vc, vu, vv]
# CHECK: C_rf_reindex_local = T.alloc_buffer((8, 49, 64)
# CHECK: T.block("A_reindex_shared")
# CHECK: T.block("C_rf")
# CHECK: C_rf[v0, 0, v1 // 7, v1 % 7, v2] = C_rf_reindex_local[v0, v1, v2]

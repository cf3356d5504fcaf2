# RUN: --target cuda:sm_80 --default --stage lowered
# Of the two rows of variables, the tile takes the one along which A has
# neighbours, though the other has more. Neighbours in E are of different batches:
# its copies have another order.
@T.prim_func
def main(A: T.Buffer((4, 32, 64, 16), "float16"), B: T.Buffer((64, 32), "float16"),
         C: T.Buffer((4, 32, 16, 32), "float32"), D: T.Buffer((4, 64, 64), "float16"),
         E: T.Buffer((64, 64, 4), "float16"), F: T.Buffer((4, 64, 64), "float32")):
    for b, i, h, j, k in T.grid(4, 32, 16, 32, 64):
        with T.block("C"):
            vb, vi, vh, vj, vk = T.axis.remap("SSSSR", [b, i, h, j, k])
            with T.init():
                C[vb, vi, vh, vj] = T.float32(0)
            C[vb, vi, vh, vj] = C[vb, vi, vh, vj] + T.Cast("float32", A[vb, vi, vk, vh]) * T.Cast("float32", B[vk, vj])
    for b, i, j, k in T.grid(4, 64, 64, 64):
        with T.block("F"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                F[vb, vi, vj] = T.float32(0)
            F[vb, vi, vj] = F[vb, vi, vj] + T.Cast("float32", D[vb, vi, vk]) * T.Cast("float32", E[vk, vj, vb])
# CHECK: thread="blockIdx.x"
# CHECK: T.load_matrix(A_shared[
# CHECK: T.warp_product(
# CHECK: thread="blockIdx.x"
# CHECK: T.warp_product({{.*}}F_reindex_local

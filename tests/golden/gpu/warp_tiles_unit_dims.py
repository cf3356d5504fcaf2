# RUN: --target cuda:sm_80 --default --stage lowered
# Rows of tiles are padded where they have neighbours, which is before dimensions
# of one element: matrices are loaded from both.
@T.prim_func
def main(A: T.Buffer((8, 64, 64, 1), "float16"), B: T.Buffer((8, 64, 128), "float16"),
         C: T.Buffer((8, 64, 128), "float32")):
    for b, i, j, k in T.grid(8, 64, 128, 64):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = T.float32(0)
            C[vb, vi, vj] = C[vb, vi, vj] + T.Cast("float32", A[vb, vi, vk, 0]) * T.Cast("float32", B[vb, vk, vj])
# CHECK-DAG: T.load_matrix(A_shared[
# CHECK-DAG: T.load_matrix(B_shared[

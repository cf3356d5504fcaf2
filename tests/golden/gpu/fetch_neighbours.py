# RUN: --target cuda:sm_80 --default --stage trace
# RUN: --target cuda:sm_80 --default --stage threads | --check-prefix=LOOPS
# An operand that is read across its rows: lanes side by side fetch elements that
# are side by side in memory.
@T.prim_func
def main(X: T.Buffer((96, 128), "float32"), B: T.Buffer((96, 128), "float32"),
         C: T.Buffer((128, 128), "float32")):
    A = T.alloc_buffer((128, 96), "float32")
    for i, k in T.grid(128, 96):
        with T.block("A"):
            vi, vk = T.axis.remap("SS", [i, k])
            A[vi, vk] = X[vk, vi]
    for i, j, k in T.grid(128, 128, 96):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
# CHECK: [[COPY:b[0-9]+]] = sch.cache_read({{b[0-9]+}}, read_buffer_index=0, storage_scope="shared")
# CHECK: sch.compute_inline(
# CHECK: sch.transform_block_layout([[COPY]], index_map="lambda i0, i1: (i1, i0)")
# LOOPS: A_shared[{{.*}}] = X[

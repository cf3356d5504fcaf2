# RUN: --target cuda:sm_80 --default --stage lowered
# RUN: --target cuda:sm_80 --default --stage trace | --check-prefix=WRITTEN
# RUN: --target cuda:sm_80 --default --allow-rounding --stage lowered | --check-prefix=ONLINE
# RUN: --target cuda:sm_80 --default --allow-rounding --stage trace | --check-prefix=TRACE
# RUN: --target cuda:sm_70 --default --allow-rounding --stage trace | --check-prefix=OLD
# Attention is one kernel: the scores of 32 rows are in shared memory, a warp
# sums a row, and the second product fetches the normalised ones from there.
@T.prim_func
def main(Q: T.Buffer((64, 32), "float16"), K: T.Buffer((64, 32), "float16"),
         V: T.Buffer((64, 32), "float16"), O: T.Buffer((64, 32), "float32")):
    S = T.alloc_buffer((64, 64), "float32")
    M = T.alloc_buffer((64,), "float32")
    E = T.alloc_buffer((64, 64), "float32")
    D = T.alloc_buffer((64,), "float32")
    P = T.alloc_buffer((64, 64), "float16")
    for i, j, k in T.grid(64, 64, 32):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                S[vi, vj] = T.float32(0)
            S[vi, vj] = S[vi, vj] + T.Cast("float32", Q[vi, vk]) * T.Cast("float32", K[vj, vk])
    for i, j in T.grid(64, 64):
        with T.block("M"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                M[vi] = T.float32(-3.4028234663852886e+38)
            M[vi] = T.max(M[vi], S[vi, vj])
    for i, j in T.grid(64, 64):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(S[vi, vj] - M[vi])
    for i, j in T.grid(64, 64):
        with T.block("D"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = D[vi] + E[vi, vj]
    for i, j in T.grid(64, 64):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.Cast("float16", E[vi, vj] / D[vi])
    for i, j, k in T.grid(64, 32, 64):
        with T.block("O"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                O[vi, vj] = T.float32(0)
            O[vi, vj] = O[vi, vj] + T.Cast("float32", P[vi, vk]) * T.Cast("float32", V[vk, vj])
# CHECK: T.thread_binding(2, thread="blockIdx.x")
# CHECK: "shared") as S_shared
# CHECK: warp_product
# CHECK: T.barrier()
# CHECK: exp(
# CHECK: warp_product
# CHECK: O[
# CHECK-NOT: blockIdx.x
# Where rounding may differ, scores, maxima, sums and the result of a row are in
# registers of a quad, and the keys go by in chunks.
# ONLINE: blockIdx.x
# ONLINE-NOT: blockIdx.x
# ONLINE: T.thread_binding(32, thread="threadIdx.x")
# ONLINE-NOT: "shared") as S
# ONLINE: "shared") as Q_shared
# ONLINE: "local") as
# ONLINE-NOT: blockIdx.x
# ONLINE: warp_product
# ONLINE: shuffle_xor
# ONLINE: exp2(
# ONLINE: warp_product
# TRACE: sch.online_product(
# TRACE-SAME: apart=8
# TRACE: sch.annotate({{.*}}, ann_key="tilefarm.row_quads", ann_val=1)
# Floats come out as written, unless that is permitted.
# WRITTEN-NOT: online_product
# No tensor cores for such products.
# OLD-NOT: online_product

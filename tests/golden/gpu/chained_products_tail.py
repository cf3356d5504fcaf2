# RUN: --target cuda:sm_80 --default --stage lowered
# RUN: --target cuda:sm_80 --default --allow-rounding --stage trace | --check-prefix=TRACE
# Tiles of 16 do not divide 50 rows: they are padded, and terms beyond the last
# have no part in the maximum, the sum or the result.
@T.prim_func
def main(Q: T.Buffer((50, 32), "float16"), K: T.Buffer((50, 32), "float16"),
         V: T.Buffer((50, 32), "float16"), O: T.Buffer((50, 32), "float32")):
    S = T.alloc_buffer((50, 50), "float32")
    M = T.alloc_buffer((50,), "float32")
    E = T.alloc_buffer((50, 50), "float32")
    D = T.alloc_buffer((50,), "float32")
    P = T.alloc_buffer((50, 50), "float16")
    for i, j, k in T.grid(50, 50, 32):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                S[vi, vj] = T.float32(0)
            S[vi, vj] = S[vi, vj] + T.Cast("float32", Q[vi, vk]) * T.Cast("float32", K[vj, vk])
    for i, j in T.grid(50, 50):
        with T.block("M"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                M[vi] = T.float32(-3.4028234663852886e+38)
            M[vi] = T.max(M[vi], S[vi, vj])
    for i, j in T.grid(50, 50):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(S[vi, vj] - M[vi])
    for i, j in T.grid(50, 50):
        with T.block("D"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = D[vi] + E[vi, vj]
    for i, j in T.grid(50, 50):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.Cast("float16", E[vi, vj] / D[vi])
    for i, j, k in T.grid(50, 32, 50):
        with T.block("O"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                O[vi, vj] = T.float32(0)
            O[vi, vj] = O[vi, vj] + T.Cast("float32", P[vi, vk]) * T.Cast("float32", V[vk, vj])
# CHECK: blockIdx.x
# CHECK: "shared") as S_pad_shared
# CHECK: K[{{.*}}], T.Broadcast(T.float16(0.0)
# CHECK: warp_product
# CHECK: T.max({{.*}}, T.if_then_else(threadIdx_x < 18, S_pad_shared[{{.*}}], T.float32("-inf")))
# CHECK: T.exp(T.if_then_else(threadIdx_x < 18,
# CHECK: warp_product
# CHECK: if {{.*}} < 50
# CHECK: O[
# CHECK-NOT: blockIdx.x
# TRACE: sch.pad_softmax({{.*}}, padding=[32, 8, 64], depth=16)
# TRACE: sch.online_product(
# TRACE: sch.annotate({{.*}}, ann_key="tilefarm.row_quads", ann_val=1)

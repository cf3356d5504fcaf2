# RUN: --target cuda:sm_75 --default --stage allocate
# Attention as one kernel without tensor cores: scores of 8 rows are in shared
# memory, those of the mask's block; 13 rows and 21 keys are no whole tiles.
@T.prim_func
def main(Q: T.Buffer((40, 13, 12), "float32"), K: T.Buffer((40, 21, 12), "float32"),
         V: T.Buffer((40, 21, 16), "float32"), A: T.Buffer((13, 21), "float32"),
         O: T.Buffer((40, 13, 16), "float32")):
    S = T.alloc_buffer((40, 13, 21), "float32")
    B = T.alloc_buffer((40, 13, 21), "float32")
    M = T.alloc_buffer((40, 13), "float32")
    P = T.alloc_buffer((40, 13, 21), "float32")
    for h, i, j, k in T.grid(40, 13, 21, 12):
        with T.block("S"):
            vh, vi, vj, vk = T.axis.remap("SSSR", [h, i, j, k])
            with T.init():
                S[vh, vi, vj] = T.float32(0)
            S[vh, vi, vj] = S[vh, vi, vj] + Q[vh, vi, vk] * K[vh, vj, vk]
    for h, i, j in T.grid(40, 13, 21):
        with T.block("B"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            B[vh, vi, vj] = S[vh, vi, vj] + A[vi, vj]
    for h, i, j in T.grid(40, 13, 21):
        with T.block("M"):
            vh, vi, vj = T.axis.remap("SSR", [h, i, j])
            with T.init():
                M[vh, vi] = T.float32(-3.4028234663852886e+38)
            M[vh, vi] = T.max(M[vh, vi], B[vh, vi, vj])
    for h, i, j in T.grid(40, 13, 21):
        with T.block("P"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            P[vh, vi, vj] = T.exp(B[vh, vi, vj] - M[vh, vi])
    for h, i, j, k in T.grid(40, 13, 16, 21):
        with T.block("O"):
            vh, vi, vj, vk = T.axis.remap("SSSR", [h, i, j, k])
            with T.init():
                O[vh, vi, vj] = T.float32(0)
            O[vh, vi, vj] = O[vh, vi, vj] + P[vh, vi, vk] * V[vh, vk, vj]
# CHECK: for h_i_0_fused in T.thread_binding(80, thread="blockIdx.x"
# CHECK-NEXT: T.allocate((1, 8), "float32", "shared") as M_shared
# CHECK-NEXT: T.allocate((1, 8, 21), "float32", "shared") as S_shared
# CHECK-NEXT: T.thread_binding(4, thread="threadIdx.y")
# CHECK-NEXT: T.thread_binding(32, thread="threadIdx.x")
# CHECK: T.serial(2, annotations={"tilefarm.shared_stages": 2})
# CHECK: T.block("Q_shared")
# CHECK: T.block("K_shared")
# CHECK: T.block("S")
# CHECK: T.block("S_local")
# CHECK: S_shared[{{.*}}] = S_local[
# CHECK: T.block("M")
# CHECK: T.block("P_shared")
# CHECK: T.exp(S_shared[{{.*}}] + A[{{.*}}] - M_shared[{{.*}}])
# CHECK: T.block("V_shared")
# CHECK: T.block("O")
# CHECK-NOT: blockIdx

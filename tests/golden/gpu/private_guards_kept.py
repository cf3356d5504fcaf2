# RUN: --target cuda:sm_80 --stage allocate
# Conditions that stay: what they exclude would read global memory (G), add to a
# sum that is read (K), write elements that exist (S), or divide by what is in
# memory (D).
@T.prim_func
def main(A: T.Buffer((50, 8), "float32"), N: T.Buffer((64,), "int32"),
         B: T.Buffer((50,), "float32"), C: T.Buffer((64,), "int32")):
    A_shared = T.alloc_buffer((50, 8), scope="shared")
    N_shared = T.alloc_buffer((64,), "int32", scope="shared")
    G = T.alloc_buffer((50,), scope="local")
    K = T.alloc_buffer((50,), scope="local")
    S = T.alloc_buffer((64,), scope="local")
    D = T.alloc_buffer((50,), "int32", scope="local")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for f in range(8):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("A_shared"):
                    vi = T.axis.spatial(50, b * 32 + t)
                    vk = T.axis.spatial(8, f)
                    T.where(b * 32 + t < 50)
                    A_shared[vi, vk] = A[vi, vk]
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("N_shared"):
                vi = T.axis.spatial(64, b * 32 + t)
                N_shared[vi] = N[vi]
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("G"):
                vi = T.axis.spatial(50, b * 32 + t)
                T.where(b * 32 + t < 50)
                G[vi] = A[vi, 0]
            for k in range(9):
                with T.block("K"):
                    vi = T.axis.spatial(50, b * 32 + t)
                    vk = T.axis.reduce(8, k)
                    T.where(k < 8)
                    with T.init():
                        K[vi] = T.float32(0)
                    K[vi] = K[vi] + A_shared[vi, vk]
            with T.block("Z"):
                vi = T.axis.spatial(64, b * 32 + t)
                S[vi] = T.float32(0)
            with T.block("S"):
                vi = T.axis.spatial(64, b * 32 + t)
                T.where(b * 32 + t < 50)
                S[vi] = T.float32(1)
            with T.block("D"):
                vi = T.axis.spatial(50, b * 32 + t)
                T.where(b * 32 + t < 50)
                D[vi] = 7 // N_shared[vi]
            with T.block("B"):
                vi = T.axis.spatial(50, b * 32 + t)
                T.where(b * 32 + t < 50)
                B[vi] = G[vi] + K[vi] + T.Cast("float32", D[vi])
            with T.block("C"):
                vi = T.axis.spatial(64, b * 32 + t)
                C[vi] = T.Cast("int32", S[vi])
# CHECK: T.block("G")
# CHECK: T.where(b * 32 + t < 50)
# CHECK: T.block("K")
# CHECK: T.where(k < 8)
# CHECK: T.block("S")
# CHECK: T.where(b * 32 + t < 50)
# CHECK: T.block("D")
# CHECK: T.where(b * 32 + t < 50)

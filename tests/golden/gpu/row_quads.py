# RUN: --stage threads --target cuda:sm_80
# RUN: --stage matrices --target cuda:sm_80 | --check-prefix=MATRICES
# RUN: --stage asm --target cuda:sm_80 | --check-prefix=ASM
# The four lanes of a quad have the rows of one thread, and of every 8 columns 2
# each: scores become the first operand of the second product in registers.
@T.prim_func
def main(Q: T.Buffer((32, 16), "float16"), K: T.Buffer((32, 16), "float16"), V: T.Buffer((32, 16), "float16"), A: T.Buffer((32, 16), "float32")):
    Qs = T.alloc_buffer((32, 16), "float16", scope="shared")
    Ks = T.alloc_buffer((32, 16), "float16", scope="shared")
    Vs = T.alloc_buffer((32, 16), "float16", scope="shared")
    S = T.alloc_buffer((32, 32), "float32", scope="local")
    M = T.alloc_buffer((32,), "float32", scope="local")
    P = T.alloc_buffer((32, 32), "float16", scope="local")
    O = T.alloc_buffer((32, 16), "float32", scope="local")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
            for i in range(4):
                for y in T.thread_binding(8, thread="threadIdx.x"):
                    for v in T.vectorized(8):
                        with T.block("Qs"):
                            vi = T.axis.spatial(32, b * 16 + i * 4 + y // 2)
                            vk = T.axis.spatial(16, y % 2 * 8 + v)
                            T.reads(Q[vi, vk])
                            T.writes(Qs[vi, vk])
                            Qs[vi, vk] = Q[vi, vk]
            for i in range(8):
                for y in T.thread_binding(8, thread="threadIdx.x"):
                    for v in T.vectorized(8):
                        with T.block("Ks"):
                            vi = T.axis.spatial(32, i * 4 + y // 2)
                            vk = T.axis.spatial(16, y % 2 * 8 + v)
                            T.reads(K[vi, vk])
                            T.writes(Ks[vi, vk])
                            Ks[vi, vk] = K[vi, vk]
            for i in range(32):
                for y in T.thread_binding(8, thread="threadIdx.x"):
                    for v in range(2):
                        with T.block("Vs"):
                            vi = T.axis.spatial(32, i)
                            vk = T.axis.spatial(16, v * 8 + y)
                            T.reads(V[vi, vk])
                            T.writes(Vs[vi, vk])
                            Vs[vi, vk] = V[vi, vk]
            for k0 in range(1):
                for k1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                    for t in range(2):
                        for j in range(32):
                            with T.block("S"):
                                vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                vj = T.axis.spatial(32, j)
                                vk = T.axis.reduce(16, k0 * 16 + k1)
                                T.reads(Qs[vi, vk], Ks[vj, vk])
                                T.writes(S[vi, vj])
                                with T.init():
                                    S[vi, vj] = T.float32(0)
                                S[vi, vj] = S[vi, vj] + T.Cast("float32", Qs[vi, vk]) * T.Cast("float32", Ks[vj, vk])
            for t in range(2):
                for j in range(32):
                    with T.block("M"):
                        vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                        vj = T.axis.reduce(32, j)
                        T.reads(M[vi], S[vi, vj])
                        T.writes(M[vi])
                        with T.init():
                            M[vi] = T.float32(-3.4028234663852886e+38)
                        M[vi] = T.max(M[vi], S[vi, vj])
            for t in range(2):
                for j in range(32):
                    with T.block("P"):
                        vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                        vj = T.axis.spatial(32, j)
                        T.reads(S[vi, vj], M[vi])
                        T.writes(P[vi, vj])
                        P[vi, vj] = T.Cast("float16", S[vi, vj] - M[vi])
            for j0 in range(2):
                for j1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                    for t in range(2):
                        for d in range(16):
                            with T.block("O"):
                                vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                vd = T.axis.spatial(16, d)
                                vj = T.axis.reduce(32, j0 * 16 + j1)
                                T.reads(P[vi, vj], Vs[vj, vd])
                                T.writes(O[vi, vd])
                                with T.init():
                                    O[vi, vd] = T.float32(0)
                                O[vi, vd] = O[vi, vd] + T.Cast("float32", P[vi, vj]) * T.Cast("float32", Vs[vj, vd])
            for t in range(2):
                for d in range(16):
                    with T.block("A"):
                        vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                        vd = T.axis.spatial(16, d)
                        T.reads(O[vi, vd])
                        T.writes(A[vi, vd])
                        A[vi, vd] = O[vi, vd]
# What is fetched is divided among lanes, whatever the loop is: neighbours fetch
# what lies side by side.
# CHECK: T.thread_binding(32, thread="threadIdx.x")
# CHECK: T.allocate((2, 4), "float32", "local") as O
# CHECK: T.allocate((2, 8), "float16", "local") as P
# CHECK: T.allocate((2, 8), "float32", "local") as S
# CHECK: Qs[threadIdx_x // 2, threadIdx_x % 2 * 8 + v] =
# CHECK: for i in T.serial(2,
# CHECK: Ks[i * 16 + threadIdx_x // 2, threadIdx_x % 2 * 8 + v] =
# CHECK: S[t, j_group * 2 + j_pair] = S[t, j_group * 2 + j_pair] +
# CHECK-SAME: Qs[t * 8 + threadIdx_x // 4, k1])
# CHECK-SAME: Ks[j_group * 8 + threadIdx_x % 4 * 2 + j_pair, k1])
# CHECK: M_partial[0] = T.float32("-inf")
# CHECK-NEXT: for j_group, j_pair in T.grid(4, 2):
# CHECK-NEXT: M_partial[0] = T.max(M_partial[0], S[t, j_group * 2 + j_pair])
# CHECK-NEXT: M_partial[0] = T.max(M_partial[0], T.shuffle_xor(M_partial[0], 2, 4))
# CHECK-NEXT: M_partial[0] = T.max(M_partial[0], T.shuffle_xor(M_partial[0], 1, 4))
# CHECK-NEXT: M[t] = T.max(M[t], M_partial[0])
# CHECK: for j_pair in T.vectorized(2):
# CHECK-NEXT: P[t, j_group * 2 + j_pair] = T.Cast("float16", S[t, j_group * 2 + j_pair] - M[t])
# CHECK: tilefarm.of_quad
# CHECK: T.Cast("float32", P[t, j0 * 4 + j1_group * 2 + j1_pair])
# CHECK-SAME: Vs[j0 * 16 + j1_group * 8 + j1_quad * 2 + j1_pair, d_group * 8 + threadIdx_x % 4 * 2 + d_pair]
# CHECK: for d_pair in T.vectorized(2):
# CHECK-NEXT: A[blockIdx_x * 16 + t * 8 + threadIdx_x // 4, d_group * 8 + threadIdx_x % 4 * 2 + d_pair] = O[t, d_group * 2 + d_pair]
# The registers of an operand: rows 8 apart, then the terms 8 further on.
# MATRICES: T.words(P[T.Ramp(0, 1, 2)]), T.words(P[T.Ramp(8, 1, 2)])), T.words(P[T.Ramp(2, 1, 2)])), T.words(P[T.Ramp(10, 1, 2)]))) as [[A:.+]]:
# MATRICES: T.words(P[T.Ramp(4, 1, 2)])
# MATRICES: T.warp_product(0, [[A]],
# ASM: .maxntid 32, 1, 1
# ASM-NOT: .local
# ASM: cvt.rn.f16x2.f32
# ASM-COUNT-4: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
# ASM: st.global.v2.f32
# ASM-NOT: .local

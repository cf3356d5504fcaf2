# A matmul whose extents leave tails, tiled for registers, one operand packed.
# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((200, 192), "float32"), B: T.Buffer((192, 250), "float32"), C: T.Buffer((200, 250), "float32")):
        # with T.block("root"):
        C_local = T.alloc_buffer((200, 250), "float32", scope="local")
        B_global = T.alloc_buffer((192, 250), "float32")
        for i_0_j_0_fused in T.parallel(24):
            for k_0 in range(3):
                for ax0, ax1 in T.grid(64, 48):
                    with T.block("B_global"):
                        v0 = T.axis.spatial(192, k_0 * 64 + ax0)
                        v1 = T.axis.spatial(250, i_0_j_0_fused % 6 * 48 + ax1)
                        T.where(i_0_j_0_fused % 6 * 48 + ax1 < 250)
                        T.reads(B[v0, v1])
                        T.writes(B_global[v0, v1])
                        B_global[v0, v1] = B[v0, v1]
                for i_1, k_1 in T.grid(8, 64):
                    for i_2 in T.unroll(7):
                        for j_1 in T.unroll(3):
                            for j_2 in T.vectorized(16):
                                with T.block("C"):
                                    vi = T.axis.spatial(200, i_0_j_0_fused // 6 * 56 + i_1 * 7 + i_2)
                                    vj = T.axis.spatial(250, i_0_j_0_fused % 6 * 48 + j_1 * 16 + j_2)
                                    vk = T.axis.reduce(192, k_0 * 64 + k_1)
                                    T.where((i_0_j_0_fused // 6 * 8 + i_1) * 7 + i_2 < 200 and (i_0_j_0_fused % 6 * 3 + j_1) * 16 + j_2 < 250)
                                    T.reads(A[vi, vk], B_global[vk, vj])
                                    T.writes(C_local[vi, vj])
                                    with T.init():
                                        C_local[vi, vj] = T.float32(0.0)
                                    C_local[vi, vj] = C_local[vi, vj] + A[vi, vk] * B_global[vk, vj]
            for ax0, ax1 in T.grid(56, 48):
                with T.block("C_local"):
                    v0 = T.axis.spatial(200, i_0_j_0_fused // 6 * 56 + ax0)
                    v1 = T.axis.spatial(250, i_0_j_0_fused % 6 * 48 + ax1)
                    T.where(i_0_j_0_fused // 6 * 56 + ax0 < 200 and i_0_j_0_fused % 6 * 48 + ax1 < 250)
                    T.reads(C_local[v0, v1])
                    T.writes(C[v0, v1])
                    C[v0, v1] = C_local[v0, v1]

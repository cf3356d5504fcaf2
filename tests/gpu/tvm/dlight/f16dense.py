# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p101: T.Buffer((16, 64), "float16"), p102: T.Buffer((32, 64), "float16"), T_matmul_NT: T.Buffer((16, 32), "float32")):
        T.func_attr({"layout_free_buffers": [1], "tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        T_matmul_NT_reindex_pad_local = T.sblock_alloc_buffer((1, 32, 64), scope="local")
        p101_reindex_pad_shared = T.sblock_alloc_buffer((1, 32, 64), "float16", scope="shared")
        p102_reindex_pad_shared = T.sblock_alloc_buffer((1, 64, 64), "float16", scope="shared")
        for ax0_ax2_0_fused in T.thread_binding(1, thread="blockIdx.y"):
            for ax1_0 in T.thread_binding(1, thread="blockIdx.x"):
                for ax2_1 in T.thread_binding(1, thread="vthread.y"):
                    for ax1_1 in T.thread_binding(1, thread="vthread.x"):
                        for ax2_2 in T.thread_binding(16, thread="threadIdx.y"):
                            for ax1_2 in T.thread_binding(8, thread="threadIdx.x", annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                                for ax1_3_init, ax2_3_0_init in T.grid(4, 2):
                                    for ax2_3_1_init in T.vectorized(2):
                                        with T.sblock("T_matmul_NT_init"):
                                            v0 = T.axis.spatial(1, 0)
                                            v1 = T.axis.spatial(32, ax1_0 * 32 + ax1_1 * 32 + ax1_2 * 4 + ax1_3_init)
                                            v2 = T.axis.spatial(64, ax2_1 * 64 + ax2_2 * 4 + ax2_3_0_init * 2 + ax2_3_1_init)
                                            T.reads()
                                            T.writes(T_matmul_NT_reindex_pad_local[0, v1, v2])
                                            T_matmul_NT_reindex_pad_local[0, v1, v2] = T.float32(0.0)
                                for ax3_0 in range(4):
                                    for ax0_ax1_ax2_fused_0 in T.thread_binding(16, thread="threadIdx.y"):
                                        for ax0_ax1_ax2_fused_1 in T.thread_binding(8, thread="threadIdx.x"):
                                            for ax0_ax1_ax2_fused_2 in range(2):
                                                for ax0_ax1_ax2_fused_3 in T.vectorized(2):
                                                    with T.sblock("p101_reindex_pad_shared"):
                                                        v0 = T.axis.spatial(1, 0)
                                                        v1 = T.axis.spatial(32, (ax0_ax1_ax2_fused_0 * 32 + ax0_ax1_ax2_fused_1 * 4 + ax0_ax1_ax2_fused_2 * 2 + ax0_ax1_ax2_fused_3) // 16)
                                                        v2 = T.axis.spatial(64, ax3_0 * 16 + (ax0_ax1_ax2_fused_0 * 32 + ax0_ax1_ax2_fused_1 * 4 + ax0_ax1_ax2_fused_2 * 2 + ax0_ax1_ax2_fused_3) % 16)
                                                        T.reads(p101[v1, v2])
                                                        T.writes(p101_reindex_pad_shared[v0, v1, v2])
                                                        T.sblock_attr({"buffer_dim_align": [[0, 1, 8, 2]]})
                                                        p101_reindex_pad_shared[v0, v1, v2] = T.if_then_else(v1 < 16, p101[v1, v2], T.float16(0.0))
                                    for ax0_ax1_ax2_fused_0 in T.thread_binding(16, thread="threadIdx.y"):
                                        for ax0_ax1_ax2_fused_1 in T.thread_binding(8, thread="threadIdx.x"):
                                            for ax0_ax1_ax2_fused_2 in range(4):
                                                for ax0_ax1_ax2_fused_3 in T.vectorized(2):
                                                    with T.sblock("p102_reindex_pad_shared"):
                                                        v0 = T.axis.spatial(1, 0)
                                                        v1 = T.axis.spatial(64, (ax0_ax1_ax2_fused_0 * 64 + ax0_ax1_ax2_fused_1 * 8 + ax0_ax1_ax2_fused_2 * 2 + ax0_ax1_ax2_fused_3) // 16)
                                                        v2 = T.axis.spatial(64, ax3_0 * 16 + (ax0_ax1_ax2_fused_0 * 64 + ax0_ax1_ax2_fused_1 * 8 + ax0_ax1_ax2_fused_2 * 2 + ax0_ax1_ax2_fused_3) % 16)
                                                        T.reads(p102[v1, v2])
                                                        T.writes(p102_reindex_pad_shared[v0, v1, v2])
                                                        T.sblock_attr({"buffer_dim_align": [[0, 1, 8, 2]]})
                                                        p102_reindex_pad_shared[v0, v1, v2] = T.if_then_else(v1 < 32, p102[v1, v2], T.float16(0.0))
                                    for ax3_1, ax1_3, ax2_3_0 in T.grid(16, 4, 2):
                                        for ax2_3_1 in T.vectorized(2):
                                            with T.sblock("T_matmul_NT_update"):
                                                v0 = T.axis.spatial(1, 0)
                                                v1 = T.axis.spatial(32, ax1_0 * 32 + ax1_1 * 32 + ax1_2 * 4 + ax1_3)
                                                v2 = T.axis.spatial(64, ax2_1 * 64 + ax2_2 * 4 + ax2_3_0 * 2 + ax2_3_1)
                                                v3 = T.axis.reduce(64, ax3_0 * 16 + ax3_1)
                                                T.reads(T_matmul_NT_reindex_pad_local[0, v1, v2], p101_reindex_pad_shared[0, v1, v3], p102_reindex_pad_shared[0, v2, v3])
                                                T.writes(T_matmul_NT_reindex_pad_local[0, v1, v2])
                                                T_matmul_NT_reindex_pad_local[0, v1, v2] = T_matmul_NT_reindex_pad_local[0, v1, v2] + T.Cast("float32", p101_reindex_pad_shared[0, v1, v3]) * T.Cast("float32", p102_reindex_pad_shared[0, v2, v3])
                                for ax0, ax1, ax2_0 in T.grid(1, 4, 2):
                                    for ax2_1_1 in T.vectorized(2):
                                        with T.sblock("T_matmul_NT_reindex_pad_local"):
                                            v0 = T.axis.spatial(1, ax0)
                                            v1 = T.axis.spatial(32, ax1_2 * 4 + ax1)
                                            v2 = T.axis.spatial(64, ax2_2 * 4 + ax2_0 * 2 + ax2_1_1)
                                            T.where(ax1_2 * 4 + ax1 < 16 and ax2_2 * 4 + ax2_0 * 2 + ax2_1_1 < 32)
                                            T.reads(T_matmul_NT_reindex_pad_local[v0, v1, v2])
                                            T.writes(T_matmul_NT[v1, v2])
                                            T_matmul_NT[v1, v2] = T_matmul_NT_reindex_pad_local[v0, v1, v2]
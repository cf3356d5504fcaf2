# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p1: T.Buffer((1, 8, 10, 10), "float32"), p2: T.Buffer((12, 8, 3, 3), "float32"), conv2d_nchw: T.Buffer((1, 12, 10, 10), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        conv2d_nchw_reindex_pad_local = T.sblock_alloc_buffer((1, 128, 64), scope="local")
        pad_temp_reindex_pad_shared = T.sblock_alloc_buffer((1, 128, 80), scope="shared")
        p2_reindex_pad_shared = T.sblock_alloc_buffer((1, 64, 80), scope="shared")
        for ax0_ax2_0_fused in T.thread_binding(1, thread="blockIdx.y"):
            for ax1_0 in T.thread_binding(4, thread="blockIdx.x"):
                for ax2_1 in T.thread_binding(1, thread="vthread.y"):
                    for ax1_1 in T.thread_binding(1, thread="vthread.x"):
                        for ax2_2 in T.thread_binding(16, thread="threadIdx.y"):
                            for ax1_2 in T.thread_binding(8, thread="threadIdx.x", annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                                for ax1_3_init, ax2_3_0_init in T.grid(4, 2):
                                    for ax2_3_1_init in T.vectorized(2):
                                        with T.sblock("conv2d_nchw_init"):
                                            v0 = T.axis.spatial(1, 0)
                                            v1 = T.axis.spatial(128, ax1_0 * 32 + ax1_1 * 32 + ax1_2 * 4 + ax1_3_init)
                                            v2 = T.axis.spatial(64, ax2_1 * 64 + ax2_2 * 4 + ax2_3_0_init * 2 + ax2_3_1_init)
                                            T.reads()
                                            T.writes(conv2d_nchw_reindex_pad_local[0, v1, v2])
                                            conv2d_nchw_reindex_pad_local[0, v1, v2] = T.float32(0.0)
                                for ax3_0 in range(5):
                                    for ax0_ax1_ax2_fused_0 in T.thread_binding(16, thread="threadIdx.y"):
                                        for ax0_ax1_ax2_fused_1 in T.thread_binding(8, thread="threadIdx.x"):
                                            for ax0_ax1_ax2_fused_2 in range(2):
                                                for ax0_ax1_ax2_fused_3 in T.vectorized(2):
                                                    with T.sblock("pad_temp_reindex_pad_shared"):
                                                        v0 = T.axis.spatial(1, 0)
                                                        v1 = T.axis.spatial(128, ax1_0 * 32 + (ax0_ax1_ax2_fused_0 * 32 + ax0_ax1_ax2_fused_1 * 4 + ax0_ax1_ax2_fused_2 * 2 + ax0_ax1_ax2_fused_3) // 16)
                                                        v2 = T.axis.spatial(80, ax3_0 * 16 + (ax0_ax1_ax2_fused_0 * 32 + ax0_ax1_ax2_fused_1 * 4 + ax0_ax1_ax2_fused_2 * 2 + ax0_ax1_ax2_fused_3) % 16)
                                                        T.reads(p1[0, v2 // 9, v1 // 10 + v2 // 3 % 3 - 1, v1 % 10 + v2 % 3 - 1])
                                                        T.writes(pad_temp_reindex_pad_shared[v0, v1, v2])
                                                        T.sblock_attr({"buffer_dim_align": [[0, 1, 8, 2]]})
                                                        pad_temp_reindex_pad_shared[v0, v1, v2] = T.if_then_else(v1 < 100 and v2 < 72, T.if_then_else(1 <= v1 // 10 + v2 // 3 % 3 and v1 // 10 + v2 // 3 % 3 < 11 and 1 <= v1 % 10 + v2 % 3 and v1 % 10 + v2 % 3 < 11, p1[0, v2 // 9, v1 // 10 + v2 // 3 % 3 - 1, v1 % 10 + v2 % 3 - 1], T.float32(0.0)), T.float32(0.0))
                                    for ax0_ax1_ax2_fused_0 in T.thread_binding(16, thread="threadIdx.y"):
                                        for ax0_ax1_ax2_fused_1 in T.thread_binding(8, thread="threadIdx.x"):
                                            for ax0_ax1_ax2_fused_2 in range(4):
                                                for ax0_ax1_ax2_fused_3 in T.vectorized(2):
                                                    with T.sblock("p2_reindex_pad_shared"):
                                                        v0 = T.axis.spatial(1, 0)
                                                        v1 = T.axis.spatial(64, (ax0_ax1_ax2_fused_0 * 64 + ax0_ax1_ax2_fused_1 * 8 + ax0_ax1_ax2_fused_2 * 2 + ax0_ax1_ax2_fused_3) // 16)
                                                        v2 = T.axis.spatial(80, ax3_0 * 16 + (ax0_ax1_ax2_fused_0 * 64 + ax0_ax1_ax2_fused_1 * 8 + ax0_ax1_ax2_fused_2 * 2 + ax0_ax1_ax2_fused_3) % 16)
                                                        T.reads(p2[v1, v2 // 9, v2 // 3 % 3, v2 % 3])
                                                        T.writes(p2_reindex_pad_shared[v0, v1, v2])
                                                        T.sblock_attr({"buffer_dim_align": [[0, 1, 8, 2]]})
                                                        p2_reindex_pad_shared[v0, v1, v2] = T.if_then_else(v1 < 12 and v2 < 72, p2[v1, v2 // 9, v2 // 3 % 3, v2 % 3], T.float32(0.0))
                                    for ax3_1, ax1_3, ax2_3_0 in T.grid(16, 4, 2):
                                        for ax2_3_1 in T.vectorized(2):
                                            with T.sblock("conv2d_nchw_update"):
                                                v0 = T.axis.spatial(1, 0)
                                                v1 = T.axis.spatial(128, ax1_0 * 32 + ax1_1 * 32 + ax1_2 * 4 + ax1_3)
                                                v2 = T.axis.spatial(64, ax2_1 * 64 + ax2_2 * 4 + ax2_3_0 * 2 + ax2_3_1)
                                                v3 = T.axis.reduce(80, ax3_0 * 16 + ax3_1)
                                                T.reads(conv2d_nchw_reindex_pad_local[0, v1, v2], pad_temp_reindex_pad_shared[0, v1, v3], p2_reindex_pad_shared[0, v2, v3])
                                                T.writes(conv2d_nchw_reindex_pad_local[0, v1, v2])
                                                conv2d_nchw_reindex_pad_local[0, v1, v2] = conv2d_nchw_reindex_pad_local[0, v1, v2] + pad_temp_reindex_pad_shared[0, v1, v3] * p2_reindex_pad_shared[0, v2, v3]
                                for ax0, ax1, ax2_0 in T.grid(1, 4, 2):
                                    for ax2_1_1 in T.vectorized(2):
                                        with T.sblock("conv2d_nchw_reindex_pad_local"):
                                            v0 = T.axis.spatial(1, ax0)
                                            v1 = T.axis.spatial(128, ax1_0 * 32 + ax1_2 * 4 + ax1)
                                            v2 = T.axis.spatial(64, ax2_2 * 4 + ax2_0 * 2 + ax2_1_1)
                                            T.where(ax2_2 * 4 + ax2_0 * 2 + ax2_1_1 < 12 and ax1_0 * 32 + ax1_2 * 4 + ax1 < 100)
                                            T.reads(conv2d_nchw_reindex_pad_local[v0, v1, v2])
                                            T.writes(conv2d_nchw[0, v2, v1 // 10, v1 % 10])
                                            conv2d_nchw[0, v2, v1 // 10, v1 % 10] = conv2d_nchw_reindex_pad_local[v0, v1, v2]
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p1: T.Buffer((1, 8, 10, 10), "float32"), p2: T.Buffer((12, 8, 3, 3), "float32"), conv2d_nchw: T.Buffer((1, 12, 10, 10), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        conv2d_nchw_local = T.sblock_alloc_buffer((1, 12, 10, 10), scope="local")
        pad_temp_shared = T.sblock_alloc_buffer((1, 8, 12, 12), scope="shared")
        p2_shared = T.sblock_alloc_buffer((12, 8, 3, 3), scope="shared")
        for nn_0_ff_0_yy_0_xx_0_fused in T.thread_binding(2, thread="blockIdx.x", annotations={"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 1}):
            for nn_1_ff_1_yy_1_xx_1_fused in T.thread_binding(1, thread="vthread.x"):
                for nn_2_ff_2_yy_2_xx_2_fused in T.thread_binding(120, thread="threadIdx.x"):
                    for nn_3_init, ff_3_init, yy_3_init, xx_3_init, nn_4_init, ff_4_init, yy_4_init, xx_4_init in T.grid(1, 1, 5, 1, 1, 1, 1, 1):
                        with T.sblock("conv2d_nchw_init"):
                            v_nn = T.axis.spatial(1, nn_3_init + nn_4_init)
                            v_ff = T.axis.spatial(12, nn_2_ff_2_yy_2_xx_2_fused // 10 + ff_3_init + ff_4_init)
                            v_yy = T.axis.spatial(10, nn_2_ff_2_yy_2_xx_2_fused % 10 // 5 * 5 + yy_3_init + yy_4_init)
                            v_xx = T.axis.spatial(10, nn_0_ff_0_yy_0_xx_0_fused * 5 + nn_2_ff_2_yy_2_xx_2_fused % 5 + xx_3_init + xx_4_init)
                            T.reads()
                            T.writes(conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx])
                            T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                            conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx] = T.float32(0.0)
                    for rc_0_ry_0_rx_0_fused in T.serial(3, annotations={"software_pipeline_async_stages": [0], "software_pipeline_order": [0, 1, 2], "software_pipeline_stage": [0, 0, 2]}):
                        for ax0_ax1_ax2_ax3_fused_0 in range(5):
                            for ax0_ax1_ax2_ax3_fused_1 in T.thread_binding(120, thread="threadIdx.x"):
                                with T.sblock("pad_temp_shared"):
                                    v0 = T.axis.spatial(1, 0)
                                    v1 = T.axis.spatial(8, (ax0_ax1_ax2_ax3_fused_0 * 120 + ax0_ax1_ax2_ax3_fused_1) // 70)
                                    v2 = T.axis.spatial(12, rc_0_ry_0_rx_0_fused + (ax0_ax1_ax2_ax3_fused_0 * 120 + ax0_ax1_ax2_ax3_fused_1) % 70 // 7)
                                    v3 = T.axis.spatial(12, nn_0_ff_0_yy_0_xx_0_fused * 5 + (ax0_ax1_ax2_ax3_fused_0 * 120 + ax0_ax1_ax2_ax3_fused_1) % 7)
                                    T.where(ax0_ax1_ax2_ax3_fused_0 * 120 + ax0_ax1_ax2_ax3_fused_1 < 560)
                                    T.reads(p1[v0, v1, v2 - 1, v3 - 1])
                                    T.writes(pad_temp_shared[v0, v1, v2, v3])
                                    pad_temp_shared[v0, v1, v2, v3] = T.if_then_else(1 <= v2 and v2 < 11 and 1 <= v3 and v3 < 11, p1[v0, v1, v2 - 1, v3 - 1], T.float32(0.0))
                        for ax0_ax1_ax2_ax3_fused_0 in range(2):
                            for ax0_ax1_ax2_ax3_fused_1 in T.thread_binding(120, thread="threadIdx.x"):
                                for ax0_ax1_ax2_ax3_fused_2 in T.vectorized(2):
                                    with T.sblock("p2_shared"):
                                        v0 = T.axis.spatial(12, (ax0_ax1_ax2_ax3_fused_0 * 240 + ax0_ax1_ax2_ax3_fused_1 * 2 + ax0_ax1_ax2_ax3_fused_2) // 24)
                                        v1 = T.axis.spatial(8, (ax0_ax1_ax2_ax3_fused_0 * 240 + ax0_ax1_ax2_ax3_fused_1 * 2 + ax0_ax1_ax2_ax3_fused_2) % 24 // 3)
                                        v2 = T.axis.spatial(3, rc_0_ry_0_rx_0_fused)
                                        v3 = T.axis.spatial(3, (ax0_ax1_ax2_ax3_fused_0 * 240 + ax0_ax1_ax2_ax3_fused_1 * 2 + ax0_ax1_ax2_ax3_fused_2) % 3)
                                        T.where((ax0_ax1_ax2_ax3_fused_0 * 120 + ax0_ax1_ax2_ax3_fused_1) * 2 + ax0_ax1_ax2_ax3_fused_2 < 288)
                                        T.reads(p2[v0, v1, v2, v3])
                                        T.writes(p2_shared[v0, v1, v2, v3])
                                        p2_shared[v0, v1, v2, v3] = p2[v0, v1, v2, v3]
                        for rc_1, ry_1, rx_1, nn_3, ff_3, yy_3, xx_3, rc_2, ry_2, rx_2, nn_4, ff_4, yy_4, xx_4 in T.grid(4, 1, 3, 1, 1, 5, 1, 2, 1, 1, 1, 1, 1, 1):
                            with T.sblock("conv2d_nchw_update"):
                                v_nn = T.axis.spatial(1, nn_3 + nn_4)
                                v_ff = T.axis.spatial(12, nn_2_ff_2_yy_2_xx_2_fused // 10 + ff_3 + ff_4)
                                v_yy = T.axis.spatial(10, nn_2_ff_2_yy_2_xx_2_fused % 10 // 5 * 5 + yy_3 + yy_4)
                                v_xx = T.axis.spatial(10, nn_0_ff_0_yy_0_xx_0_fused * 5 + nn_2_ff_2_yy_2_xx_2_fused % 5 + xx_3 + xx_4)
                                v_rc = T.axis.reduce(8, rc_1 * 2 + rc_2)
                                v_ry = T.axis.reduce(3, rc_0_ry_0_rx_0_fused + ry_1 + ry_2)
                                v_rx = T.axis.reduce(3, rx_1 + rx_2)
                                T.reads(conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx], pad_temp_shared[v_nn, v_rc, v_yy + v_ry, v_xx + v_rx], p2_shared[v_ff, v_rc, v_ry, v_rx])
                                T.writes(conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx])
                                T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                                conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx] = conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx] + pad_temp_shared[v_nn, v_rc, v_yy + v_ry, v_xx + v_rx] * p2_shared[v_ff, v_rc, v_ry, v_rx]
                    for ax0, ax1, ax2, ax3 in T.grid(1, 1, 5, 1):
                        with T.sblock("conv2d_nchw_local"):
                            v0 = T.axis.spatial(1, ax0)
                            v1 = T.axis.spatial(12, nn_2_ff_2_yy_2_xx_2_fused // 10 + ax1)
                            v2 = T.axis.spatial(10, nn_2_ff_2_yy_2_xx_2_fused % 10 // 5 * 5 + ax2)
                            v3 = T.axis.spatial(10, nn_0_ff_0_yy_0_xx_0_fused * 5 + nn_2_ff_2_yy_2_xx_2_fused % 5 + ax3)
                            T.reads(conv2d_nchw_local[v0, v1, v2, v3])
                            T.writes(conv2d_nchw[v0, v1, v2, v3])
                            conv2d_nchw[v0, v1, v2, v3] = conv2d_nchw_local[v0, v1, v2, v3]
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p15: T.Buffer((1, 16, 9, 9), "float32"), p16: T.Buffer((24, 4, 3, 3), "float32"), group_conv2d_nchw: T.Buffer((1, 24, 9, 9), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        group_conv2d_nchw_local = T.sblock_alloc_buffer((1, 24, 9, 9), scope="local")
        pad_temp_shared = T.sblock_alloc_buffer((1, 16, 11, 11), scope="shared")
        p16_shared = T.sblock_alloc_buffer((24, 4, 3, 3), scope="shared")
        for nn_0_ff_0_yy_0_xx_0_fused in T.thread_binding(1, thread="blockIdx.x", annotations={"pragma_auto_unroll_max_step": 512, "pragma_unroll_explicit": 1}):
            for nn_1_ff_1_yy_1_xx_1_fused in T.thread_binding(1, thread="vthread.x"):
                for nn_2_ff_2_yy_2_xx_2_fused in T.thread_binding(54, thread="threadIdx.x"):
                    for nn_3_init, ff_3_init, yy_3_init, xx_3_init, nn_4_init, ff_4_init, yy_4_init, xx_4_init in T.grid(1, 6, 3, 1, 1, 2, 1, 1):
                        with T.sblock("group_conv2d_nchw_init"):
                            v_nn = T.axis.spatial(1, nn_3_init + nn_4_init)
                            v_ff = T.axis.spatial(24, nn_2_ff_2_yy_2_xx_2_fused // 27 * 12 + ff_3_init * 2 + ff_4_init)
                            v_yy = T.axis.spatial(9, nn_2_ff_2_yy_2_xx_2_fused % 27 // 9 * 3 + yy_3_init + yy_4_init)
                            v_xx = T.axis.spatial(9, nn_2_ff_2_yy_2_xx_2_fused % 9 + xx_3_init + xx_4_init)
                            T.reads()
                            T.writes(group_conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx])
                            T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                            group_conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx] = T.float32(0.0)
                    for rc_0_ry_0_rx_0_fused in T.serial(3, annotations={"software_pipeline_async_stages": [0], "software_pipeline_order": [0, 1, 2], "software_pipeline_stage": [0, 0, 2]}):
                        for ax0_ax1_ax2_ax3_fused_0 in range(10):
                            for ax0_ax1_ax2_ax3_fused_1 in T.thread_binding(54, thread="threadIdx.x"):
                                for ax0_ax1_ax2_ax3_fused_2 in T.vectorized(3):
                                    with T.sblock("pad_temp_shared"):
                                        v0 = T.axis.spatial(1, 0)
                                        v1 = T.axis.spatial(16, (ax0_ax1_ax2_ax3_fused_0 * 162 + ax0_ax1_ax2_ax3_fused_1 * 3 + ax0_ax1_ax2_ax3_fused_2) // 99)
                                        v2 = T.axis.spatial(11, rc_0_ry_0_rx_0_fused + (ax0_ax1_ax2_ax3_fused_0 * 162 + ax0_ax1_ax2_ax3_fused_1 * 3 + ax0_ax1_ax2_ax3_fused_2) % 99 // 11)
                                        v3 = T.axis.spatial(11, (ax0_ax1_ax2_ax3_fused_0 * 162 + ax0_ax1_ax2_ax3_fused_1 * 3 + ax0_ax1_ax2_ax3_fused_2) % 11)
                                        T.where((ax0_ax1_ax2_ax3_fused_0 * 54 + ax0_ax1_ax2_ax3_fused_1) * 3 + ax0_ax1_ax2_ax3_fused_2 < 1584)
                                        T.reads(p15[v0, v1, v2 - 1, v3 - 1])
                                        T.writes(pad_temp_shared[v0, v1, v2, v3])
                                        pad_temp_shared[v0, v1, v2, v3] = T.if_then_else(1 <= v2 and v2 < 10 and 1 <= v3 and v3 < 10, p15[v0, v1, v2 - 1, v3 - 1], T.float32(0.0))
                        for ax0_ax1_ax2_ax3_fused_0 in range(2):
                            for ax0_ax1_ax2_ax3_fused_1 in T.thread_binding(54, thread="threadIdx.x"):
                                for ax0_ax1_ax2_ax3_fused_2 in T.vectorized(3):
                                    with T.sblock("p16_shared"):
                                        v0 = T.axis.spatial(24, (ax0_ax1_ax2_ax3_fused_0 * 162 + ax0_ax1_ax2_ax3_fused_1 * 3 + ax0_ax1_ax2_ax3_fused_2) // 12)
                                        v1 = T.axis.spatial(4, (ax0_ax1_ax2_ax3_fused_0 * 162 + ax0_ax1_ax2_ax3_fused_1 * 3 + ax0_ax1_ax2_ax3_fused_2) % 12 // 3)
                                        v2 = T.axis.spatial(3, rc_0_ry_0_rx_0_fused)
                                        v3 = T.axis.spatial(3, (ax0_ax1_ax2_ax3_fused_0 * 162 + ax0_ax1_ax2_ax3_fused_1 * 3 + ax0_ax1_ax2_ax3_fused_2) % 3)
                                        T.where((ax0_ax1_ax2_ax3_fused_0 * 54 + ax0_ax1_ax2_ax3_fused_1) * 3 + ax0_ax1_ax2_ax3_fused_2 < 288)
                                        T.reads(p16[v0, v1, v2, v3])
                                        T.writes(p16_shared[v0, v1, v2, v3])
                                        p16_shared[v0, v1, v2, v3] = p16[v0, v1, v2, v3]
                        for rc_1, ry_1, rx_1, nn_3, ff_3, yy_3, xx_3, rc_2, ry_2, rx_2, nn_4, ff_4, yy_4, xx_4 in T.grid(2, 1, 3, 1, 6, 3, 1, 2, 1, 1, 1, 2, 1, 1):
                            with T.sblock("group_conv2d_nchw_update"):
                                v_nn = T.axis.spatial(1, nn_3 + nn_4)
                                v_ff = T.axis.spatial(24, nn_2_ff_2_yy_2_xx_2_fused // 27 * 12 + ff_3 * 2 + ff_4)
                                v_yy = T.axis.spatial(9, nn_2_ff_2_yy_2_xx_2_fused % 27 // 9 * 3 + yy_3 + yy_4)
                                v_xx = T.axis.spatial(9, nn_2_ff_2_yy_2_xx_2_fused % 9 + xx_3 + xx_4)
                                v_rc = T.axis.reduce(4, rc_1 * 2 + rc_2)
                                v_ry = T.axis.reduce(3, rc_0_ry_0_rx_0_fused + ry_1 + ry_2)
                                v_rx = T.axis.reduce(3, rx_1 + rx_2)
                                T.reads(group_conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx], pad_temp_shared[v_nn, v_ff // 6 * 4 + v_rc, v_yy + v_ry, v_xx + v_rx], p16_shared[v_ff, v_rc, v_ry, v_rx])
                                T.writes(group_conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx])
                                T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                                group_conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx] = group_conv2d_nchw_local[v_nn, v_ff, v_yy, v_xx] + pad_temp_shared[v_nn, v_ff // 6 * 4 + v_rc, v_yy + v_ry, v_xx + v_rx] * p16_shared[v_ff, v_rc, v_ry, v_rx]
                    for ax0, ax1, ax2, ax3 in T.grid(1, 12, 3, 1):
                        with T.sblock("group_conv2d_nchw_local"):
                            v0 = T.axis.spatial(1, ax0)
                            v1 = T.axis.spatial(24, nn_2_ff_2_yy_2_xx_2_fused // 27 * 12 + ax1)
                            v2 = T.axis.spatial(9, nn_2_ff_2_yy_2_xx_2_fused % 27 // 9 * 3 + ax2)
                            v3 = T.axis.spatial(9, nn_2_ff_2_yy_2_xx_2_fused % 9 + ax3)
                            T.reads(group_conv2d_nchw_local[v0, v1, v2, v3])
                            T.writes(group_conv2d_nchw[v0, v1, v2, v3])
                            group_conv2d_nchw[v0, v1, v2, v3] = group_conv2d_nchw_local[v0, v1, v2, v3]
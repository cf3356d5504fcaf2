# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p9: T.Buffer((2, 5, 17), "float32"), p10: T.Buffer((7, 5, 3), "float32"), conv1d_ncw: T.Buffer((2, 7, 17), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        conv1d_ncw_local = T.sblock_alloc_buffer((2, 7, 17), scope="local")
        pad_temp_shared = T.sblock_alloc_buffer((2, 5, 19), scope="shared")
        p10_shared = T.sblock_alloc_buffer((7, 5, 3), scope="shared")
        for nn_0_ff_0_yy_0_fused in T.thread_binding(2, thread="blockIdx.x", annotations={"pragma_auto_unroll_max_step": 128, "pragma_unroll_explicit": 1}):
            for nn_1_ff_1_yy_1_fused in T.thread_binding(1, thread="vthread.x"):
                for nn_2_ff_2_yy_2_fused in T.thread_binding(119, thread="threadIdx.x"):
                    for nn_3_init, ff_3_init, yy_3_init, nn_4_init, ff_4_init, yy_4_init in T.grid(1, 1, 1, 1, 1, 1):
                        with T.sblock("conv1d_ncw_init"):
                            v_nn = T.axis.spatial(2, nn_0_ff_0_yy_0_fused + nn_3_init + nn_4_init)
                            v_ff = T.axis.spatial(7, nn_2_ff_2_yy_2_fused // 17 + ff_3_init + ff_4_init)
                            v_yy = T.axis.spatial(17, nn_2_ff_2_yy_2_fused % 17 + yy_3_init + yy_4_init)
                            T.reads()
                            T.writes(conv1d_ncw_local[v_nn, v_ff, v_yy])
                            T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                            conv1d_ncw_local[v_nn, v_ff, v_yy] = T.float32(0.0)
                    for rc_0_ry_0_fused in T.serial(3, annotations={"software_pipeline_async_stages": [0], "software_pipeline_order": [0, 1, 2], "software_pipeline_stage": [0, 0, 3]}):
                        for ax0_ax1_ax2_fused_0 in range(1):
                            for ax0_ax1_ax2_fused_1 in T.thread_binding(119, thread="threadIdx.x"):
                                with T.sblock("pad_temp_shared"):
                                    v0 = T.axis.spatial(2, nn_0_ff_0_yy_0_fused)
                                    v1 = T.axis.spatial(5, (ax0_ax1_ax2_fused_0 * 119 + ax0_ax1_ax2_fused_1) // 17)
                                    v2 = T.axis.spatial(19, rc_0_ry_0_fused + (ax0_ax1_ax2_fused_0 * 119 + ax0_ax1_ax2_fused_1) % 17)
                                    T.where(ax0_ax1_ax2_fused_0 * 119 + ax0_ax1_ax2_fused_1 < 85)
                                    T.reads(p9[v0, v1, v2 - 1])
                                    T.writes(pad_temp_shared[v0, v1, v2])
                                    pad_temp_shared[v0, v1, v2] = T.if_then_else(1 <= v2 and v2 < 18, p9[v0, v1, v2 - 1], T.float32(0.0))
                        for ax0_ax1_ax2_fused_0 in range(1):
                            for ax0_ax1_ax2_fused_1 in T.thread_binding(119, thread="threadIdx.x"):
                                with T.sblock("p10_shared"):
                                    v0 = T.axis.spatial(7, (ax0_ax1_ax2_fused_0 * 119 + ax0_ax1_ax2_fused_1) // 5)
                                    v1 = T.axis.spatial(5, (ax0_ax1_ax2_fused_0 * 119 + ax0_ax1_ax2_fused_1) % 5)
                                    v2 = T.axis.spatial(3, rc_0_ry_0_fused)
                                    T.where(ax0_ax1_ax2_fused_0 * 119 + ax0_ax1_ax2_fused_1 < 35)
                                    T.reads(p10[v0, v1, v2])
                                    T.writes(p10_shared[v0, v1, v2])
                                    p10_shared[v0, v1, v2] = p10[v0, v1, v2]
                        for rc_1, ry_1, nn_3, ff_3, yy_3, rc_2, ry_2, nn_4, ff_4, yy_4 in T.grid(1, 1, 1, 1, 1, 5, 1, 1, 1, 1):
                            with T.sblock("conv1d_ncw_update"):
                                v_nn = T.axis.spatial(2, nn_0_ff_0_yy_0_fused + nn_3 + nn_4)
                                v_ff = T.axis.spatial(7, nn_2_ff_2_yy_2_fused // 17 + ff_3 + ff_4)
                                v_yy = T.axis.spatial(17, nn_2_ff_2_yy_2_fused % 17 + yy_3 + yy_4)
                                v_rc = T.axis.reduce(5, rc_1 * 5 + rc_2)
                                v_ry = T.axis.reduce(3, rc_0_ry_0_fused + ry_1 + ry_2)
                                T.reads(conv1d_ncw_local[v_nn, v_ff, v_yy], pad_temp_shared[v_nn, v_rc, v_yy + v_ry], p10_shared[v_ff, v_rc, v_ry])
                                T.writes(conv1d_ncw_local[v_nn, v_ff, v_yy])
                                T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                                conv1d_ncw_local[v_nn, v_ff, v_yy] = conv1d_ncw_local[v_nn, v_ff, v_yy] + pad_temp_shared[v_nn, v_rc, v_yy + v_ry] * p10_shared[v_ff, v_rc, v_ry]
                    for ax0, ax1, ax2 in T.grid(1, 1, 1):
                        with T.sblock("conv1d_ncw_local"):
                            v0 = T.axis.spatial(2, nn_0_ff_0_yy_0_fused + ax0)
                            v1 = T.axis.spatial(7, nn_2_ff_2_yy_2_fused // 17 + ax1)
                            v2 = T.axis.spatial(17, nn_2_ff_2_yy_2_fused % 17 + ax2)
                            T.reads(conv1d_ncw_local[v0, v1, v2])
                            T.writes(conv1d_ncw[v0, v1, v2])
                            conv1d_ncw[v0, v1, v2] = conv1d_ncw_local[v0, v1, v2]
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p17: T.Buffer((1, 6, 7, 7), "float32"), p18: T.Buffer((6, 5, 4, 4), "float32"), compute: T.Buffer((1, 5, 14, 14), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        compute_local = T.sblock_alloc_buffer((1, 5, 14, 14), scope="local")
        data_pad_shared = T.sblock_alloc_buffer((1, 6, 17, 17), scope="shared")
        kernel_transform_shared = T.sblock_alloc_buffer((5, 6, 4, 4), scope="shared")
        for b_0_c_0_h_0_w_0_fused in T.thread_binding(10, thread="blockIdx.x", annotations={"pragma_auto_unroll_max_step": 32, "pragma_unroll_explicit": 1}):
            for b_1_c_1_h_1_w_1_fused in T.thread_binding(1, thread="vthread.x"):
                for b_2_c_2_h_2_w_2_fused in T.thread_binding(98, thread="threadIdx.x"):
                    for b_3_init, c_3_init, h_3_init, w_3_init, b_4_init, c_4_init, h_4_init, w_4_init in T.grid(1, 1, 1, 1, 1, 1, 1, 1):
                        with T.sblock("compute_init"):
                            v_b = T.axis.spatial(1, b_3_init + b_4_init)
                            v_c = T.axis.spatial(5, b_0_c_0_h_0_w_0_fused // 2 + c_3_init + c_4_init)
                            v_h = T.axis.spatial(14, b_0_c_0_h_0_w_0_fused % 2 * 7 + b_2_c_2_h_2_w_2_fused // 14 + h_3_init + h_4_init)
                            v_w = T.axis.spatial(14, b_2_c_2_h_2_w_2_fused % 14 + w_3_init + w_4_init)
                            T.reads()
                            T.writes(compute_local[v_b, v_c, v_h, v_w])
                            T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                            compute_local[v_b, v_c, v_h, v_w] = T.float32(0.0)
                    for dc_0, dh_0, dw_0 in T.grid(3, 4, 1):
                        for ax0_ax1_ax2_ax3_fused_0 in range(3):
                            for ax0_ax1_ax2_ax3_fused_1 in T.thread_binding(98, thread="threadIdx.x"):
                                with T.sblock("data_pad_shared"):
                                    v0 = T.axis.spatial(1, 0)
                                    v1 = T.axis.spatial(6, dc_0 * 2 + (ax0_ax1_ax2_ax3_fused_0 * 98 + ax0_ax1_ax2_ax3_fused_1) // 119)
                                    v2 = T.axis.spatial(17, dh_0 + b_0_c_0_h_0_w_0_fused % 2 * 7 + (ax0_ax1_ax2_ax3_fused_0 * 98 + ax0_ax1_ax2_ax3_fused_1) % 119 // 17)
                                    v3 = T.axis.spatial(17, (ax0_ax1_ax2_ax3_fused_0 * 98 + ax0_ax1_ax2_ax3_fused_1) % 17)
                                    T.where(ax0_ax1_ax2_ax3_fused_0 * 98 + ax0_ax1_ax2_ax3_fused_1 < 238)
                                    T.reads(p17[v0, v1, (v2 - 2) // 2, (v3 - 2) // 2])
                                    T.writes(data_pad_shared[v0, v1, v2, v3])
                                    data_pad_shared[v0, v1, v2, v3] = T.if_then_else(2 <= v2 and v2 < 15 and 2 <= v3 and v3 < 15, T.if_then_else((v2 - 2) % 2 == 0 and (v3 - 2) % 2 == 0, p17[v0, v1, (v2 - 2) // 2, (v3 - 2) // 2], T.float32(0.0)), T.float32(0.0))
                        for ax0_ax1_ax2_ax3_fused_0 in range(1):
                            for ax0_ax1_ax2_ax3_fused_1 in T.thread_binding(98, thread="threadIdx.x"):
                                for ax0_ax1_ax2_ax3_fused_2 in T.vectorized(2):
                                    with T.sblock("kernel_transform_shared"):
                                        v0 = T.axis.spatial(5, b_0_c_0_h_0_w_0_fused // 2)
                                        v1 = T.axis.spatial(6, dc_0 * 2 + (ax0_ax1_ax2_ax3_fused_0 * 196 + ax0_ax1_ax2_ax3_fused_1 * 2 + ax0_ax1_ax2_ax3_fused_2) // 4)
                                        v2 = T.axis.spatial(4, dh_0)
                                        v3 = T.axis.spatial(4, (ax0_ax1_ax2_ax3_fused_0 * 196 + ax0_ax1_ax2_ax3_fused_1 * 2 + ax0_ax1_ax2_ax3_fused_2) % 4)
                                        T.where((ax0_ax1_ax2_ax3_fused_0 * 98 + ax0_ax1_ax2_ax3_fused_1) * 2 + ax0_ax1_ax2_ax3_fused_2 < 8)
                                        T.reads(p18[v1, v0, 3 - v2, 3 - v3])
                                        T.writes(kernel_transform_shared[v0, v1, v2, v3])
                                        kernel_transform_shared[v0, v1, v2, v3] = p18[v1, v0, 3 - v2, 3 - v3]
                        for dc_1, dh_1, dw_1, b_3, c_3, h_3, w_3, dc_2, dh_2, dw_2, b_4, c_4, h_4, w_4 in T.grid(2, 1, 1, 1, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1):
                            with T.sblock("compute_update"):
                                v_b = T.axis.spatial(1, b_3 + b_4)
                                v_c = T.axis.spatial(5, b_0_c_0_h_0_w_0_fused // 2 + c_3 + c_4)
                                v_h = T.axis.spatial(14, b_0_c_0_h_0_w_0_fused % 2 * 7 + b_2_c_2_h_2_w_2_fused // 14 + h_3 + h_4)
                                v_w = T.axis.spatial(14, b_2_c_2_h_2_w_2_fused % 14 + w_3 + w_4)
                                v_dc = T.axis.reduce(6, dc_0 * 2 + dc_1 + dc_2)
                                v_dh = T.axis.reduce(4, dh_0 + dh_1 + dh_2)
                                v_dw = T.axis.reduce(4, dw_0 * 4 + dw_1 * 4 + dw_2)
                                T.reads(compute_local[v_b, v_c, v_h, v_w], data_pad_shared[v_b, v_dc, v_h + v_dh, v_w + v_dw], kernel_transform_shared[v_c, v_dc, v_dh, v_dw])
                                T.writes(compute_local[v_b, v_c, v_h, v_w])
                                T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                                compute_local[v_b, v_c, v_h, v_w] = compute_local[v_b, v_c, v_h, v_w] + data_pad_shared[v_b, v_dc, v_h + v_dh, v_w + v_dw] * kernel_transform_shared[v_c, v_dc, v_dh, v_dw]
                    for ax0, ax1, ax2, ax3 in T.grid(1, 1, 1, 1):
                        with T.sblock("compute_local"):
                            v0 = T.axis.spatial(1, ax0)
                            v1 = T.axis.spatial(5, b_0_c_0_h_0_w_0_fused // 2 + ax1)
                            v2 = T.axis.spatial(14, b_0_c_0_h_0_w_0_fused % 2 * 7 + b_2_c_2_h_2_w_2_fused // 14 + ax2)
                            v3 = T.axis.spatial(14, b_2_c_2_h_2_w_2_fused % 14 + ax3)
                            T.reads(compute_local[v0, v1, v2, v3])
                            T.writes(compute[v0, v1, v2, v3])
                            compute[v0, v1, v2, v3] = compute_local[v0, v1, v2, v3]
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p43: T.Buffer((3, 10, 24), "float32"), p44: T.Buffer((3, 14, 24), "float32"), T_batch_matmul_NT: T.Buffer((3, 10, 14), "float32")):
        T.func_attr({"layout_free_buffers": [1], "tirx.noalias": True})
        # with T.sblock("root"):
        T_batch_matmul_NT_local = T.sblock_alloc_buffer((3, 10, 14), scope="local")
        p43_shared = T.sblock_alloc_buffer((3, 10, 24), scope="shared")
        p44_shared = T.sblock_alloc_buffer((3, 14, 24), scope="shared")
        for b_0_i_0_j_0_fused in T.thread_binding(6, thread="blockIdx.x", annotations={"pragma_auto_unroll_max_step": 32, "pragma_unroll_explicit": 1}):
            for b_1_i_1_j_1_fused in T.thread_binding(1, thread="vthread.x"):
                for b_2_i_2_j_2_fused in T.thread_binding(70, thread="threadIdx.x"):
                    for b_3_init, i_3_init, j_3_init, b_4_init, i_4_init, j_4_init in T.grid(1, 1, 1, 1, 1, 1):
                        with T.sblock("T_batch_matmul_NT_init"):
                            v_b = T.axis.spatial(3, b_0_i_0_j_0_fused // 2 + b_3_init + b_4_init)
                            v_i = T.axis.spatial(10, b_0_i_0_j_0_fused % 2 * 5 + b_2_i_2_j_2_fused // 14 + i_3_init + i_4_init)
                            v_j = T.axis.spatial(14, b_2_i_2_j_2_fused % 14 + j_3_init + j_4_init)
                            T.reads()
                            T.writes(T_batch_matmul_NT_local[v_b, v_i, v_j])
                            T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                            T_batch_matmul_NT_local[v_b, v_i, v_j] = T.float32(0.0)
                    for k_0 in range(1):
                        for ax0_ax1_ax2_fused_0 in range(1):
                            for ax0_ax1_ax2_fused_1 in T.thread_binding(70, thread="threadIdx.x"):
                                for ax0_ax1_ax2_fused_2 in T.vectorized(2):
                                    with T.sblock("p43_shared"):
                                        v0 = T.axis.spatial(3, b_0_i_0_j_0_fused // 2)
                                        v1 = T.axis.spatial(10, b_0_i_0_j_0_fused % 2 * 5 + (ax0_ax1_ax2_fused_0 * 140 + ax0_ax1_ax2_fused_1 * 2 + ax0_ax1_ax2_fused_2) // 24)
                                        v2 = T.axis.spatial(24, (ax0_ax1_ax2_fused_0 * 140 + ax0_ax1_ax2_fused_1 * 2 + ax0_ax1_ax2_fused_2) % 24)
                                        T.where((ax0_ax1_ax2_fused_0 * 70 + ax0_ax1_ax2_fused_1) * 2 + ax0_ax1_ax2_fused_2 < 120)
                                        T.reads(p43[v0, v1, v2])
                                        T.writes(p43_shared[v0, v1, v2])
                                        p43_shared[v0, v1, v2] = p43[v0, v1, v2]
                        for ax0_ax1_ax2_fused_0 in range(2):
                            for ax0_ax1_ax2_fused_1 in T.thread_binding(70, thread="threadIdx.x"):
                                for ax0_ax1_ax2_fused_2 in T.vectorized(4):
                                    with T.sblock("p44_shared"):
                                        v0 = T.axis.spatial(3, b_0_i_0_j_0_fused // 2)
                                        v1 = T.axis.spatial(14, (ax0_ax1_ax2_fused_0 * 280 + ax0_ax1_ax2_fused_1 * 4 + ax0_ax1_ax2_fused_2) // 24)
                                        v2 = T.axis.spatial(24, (ax0_ax1_ax2_fused_0 * 280 + ax0_ax1_ax2_fused_1 * 4 + ax0_ax1_ax2_fused_2) % 24)
                                        T.where((ax0_ax1_ax2_fused_0 * 70 + ax0_ax1_ax2_fused_1) * 4 + ax0_ax1_ax2_fused_2 < 336)
                                        T.reads(p44[v0, v1, v2])
                                        T.writes(p44_shared[v0, v1, v2])
                                        p44_shared[v0, v1, v2] = p44[v0, v1, v2]
                        for k_1, b_3, i_3, j_3, k_2, b_4, i_4, j_4 in T.grid(12, 1, 1, 1, 2, 1, 1, 1):
                            with T.sblock("T_batch_matmul_NT_update"):
                                v_b = T.axis.spatial(3, b_0_i_0_j_0_fused // 2 + b_3 + b_4)
                                v_i = T.axis.spatial(10, b_0_i_0_j_0_fused % 2 * 5 + b_2_i_2_j_2_fused // 14 + i_3 + i_4)
                                v_j = T.axis.spatial(14, b_2_i_2_j_2_fused % 14 + j_3 + j_4)
                                v_k = T.axis.reduce(24, k_0 * 24 + k_1 * 2 + k_2)
                                T.reads(T_batch_matmul_NT_local[v_b, v_i, v_j], p43_shared[v_b, v_i, v_k], p44_shared[v_b, v_j, v_k])
                                T.writes(T_batch_matmul_NT_local[v_b, v_i, v_j])
                                T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                                T_batch_matmul_NT_local[v_b, v_i, v_j] = T_batch_matmul_NT_local[v_b, v_i, v_j] + p43_shared[v_b, v_i, v_k] * p44_shared[v_b, v_j, v_k]
                    for ax0, ax1, ax2 in T.grid(1, 1, 1):
                        with T.sblock("T_batch_matmul_NT_local"):
                            v0 = T.axis.spatial(3, b_0_i_0_j_0_fused // 2 + ax0)
                            v1 = T.axis.spatial(10, b_0_i_0_j_0_fused % 2 * 5 + b_2_i_2_j_2_fused // 14 + ax1)
                            v2 = T.axis.spatial(14, b_2_i_2_j_2_fused % 14 + ax2)
                            T.reads(T_batch_matmul_NT_local[v0, v1, v2])
                            T.writes(T_batch_matmul_NT[v0, v1, v2])
                            T_batch_matmul_NT[v0, v1, v2] = T_batch_matmul_NT_local[v0, v1, v2]
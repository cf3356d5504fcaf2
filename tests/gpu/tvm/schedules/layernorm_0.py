# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p26: T.Buffer((2, 12, 48), "float32"), p27: T.Buffer((48,), "float32"), p28: T.Buffer((48,), "float32"), T_layer_norm: T.Buffer((2, 12, 48), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        p26_sum = T.sblock_alloc_buffer((2, 12))
        p26_var_sum = T.sblock_alloc_buffer((2, 12))
        for ax0_ax1_fused in T.thread_binding(24, thread="blockIdx.x", annotations={"pragma_auto_unroll_max_step": 1024, "pragma_unroll_explicit": 1}):
            for k2_0 in range(12):
                for k2_1 in T.thread_binding(4, thread="threadIdx.x"):
                    with T.sblock("p26_sum"):
                        v_ax0 = T.axis.spatial(2, ax0_ax1_fused // 12)
                        v_ax1 = T.axis.spatial(12, ax0_ax1_fused % 12)
                        v_k2 = T.axis.reduce(48, k2_0 * 4 + k2_1)
                        T.reads(p26[v_ax0, v_ax1, v_k2])
                        T.writes(p26_sum[v_ax0, v_ax1])
                        with T.init():
                            p26_sum[v_ax0, v_ax1] = T.float32(0.0)
                        p26_sum[v_ax0, v_ax1] = p26_sum[v_ax0, v_ax1] + p26[v_ax0, v_ax1, v_k2]
        for ax0_ax1_fused_0 in T.thread_binding(1, thread="blockIdx.x", annotations={"pragma_auto_unroll_max_step": 1024, "pragma_unroll_explicit": 1}):
            for ax0_ax1_fused_1 in T.thread_binding(24, thread="threadIdx.x"):
                with T.sblock("p26_var_sum_init"):
                    v_ax0 = T.axis.spatial(2, (ax0_ax1_fused_0 * 24 + ax0_ax1_fused_1) // 12)
                    v_ax1 = T.axis.spatial(12, (ax0_ax1_fused_0 * 24 + ax0_ax1_fused_1) % 12)
                    T.reads()
                    T.writes(p26_var_sum[v_ax0, v_ax1])
                    p26_var_sum[v_ax0, v_ax1] = T.float32(0.0)
                for k2 in range(48):
                    with T.sblock("p26_var_sum_update"):
                        v_ax0 = T.axis.spatial(2, (ax0_ax1_fused_0 * 24 + ax0_ax1_fused_1) // 12)
                        v_ax1 = T.axis.spatial(12, (ax0_ax1_fused_0 * 24 + ax0_ax1_fused_1) % 12)
                        v_k2 = T.axis.reduce(48, k2)
                        T.reads(p26_var_sum[v_ax0, v_ax1], p26[v_ax0, v_ax1, v_k2], p26_sum[v_ax0, v_ax1])
                        T.writes(p26_var_sum[v_ax0, v_ax1])
                        p26_var_sum[v_ax0, v_ax1] = p26_var_sum[v_ax0, v_ax1] + (p26[v_ax0, v_ax1, v_k2] - p26_sum[v_ax0, v_ax1] / T.float32(48.0)) * (p26[v_ax0, v_ax1, v_k2] - p26_sum[v_ax0, v_ax1] / T.float32(48.0))
        for ax0_ax1_ax2_fused_0 in T.thread_binding(18, thread="blockIdx.x"):
            for ax0_ax1_ax2_fused_1 in T.thread_binding(64, thread="threadIdx.x"):
                with T.sblock("T_layer_norm"):
                    v_ax0 = T.axis.spatial(2, (ax0_ax1_ax2_fused_0 * 64 + ax0_ax1_ax2_fused_1) // 576)
                    v_ax1 = T.axis.spatial(12, (ax0_ax1_ax2_fused_0 * 64 + ax0_ax1_ax2_fused_1) % 576 // 48)
                    v_ax2 = T.axis.spatial(48, (ax0_ax1_ax2_fused_0 * 64 + ax0_ax1_ax2_fused_1) % 48)
                    T.reads(p26[v_ax0, v_ax1, v_ax2], p26_sum[v_ax0, v_ax1], p26_var_sum[v_ax0, v_ax1], p27[v_ax2], p28[v_ax2])
                    T.writes(T_layer_norm[v_ax0, v_ax1, v_ax2])
                    T_layer_norm[v_ax0, v_ax1, v_ax2] = (p26[v_ax0, v_ax1, v_ax2] - p26_sum[v_ax0, v_ax1] / T.float32(48.0)) * T.rsqrt(p26_var_sum[v_ax0, v_ax1] / T.float32(48.0) + T.float32(1.0000000000000001e-05)) * p27[v_ax2] + p28[v_ax2]
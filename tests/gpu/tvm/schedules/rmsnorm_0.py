# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p29: T.Buffer((2, 12, 48), "float32"), p30: T.Buffer((48,), "float32"), T_cast: T.Buffer((2, 12, 48), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        T_multiply_red = T.sblock_alloc_buffer((2, 12))
        for ax0_ax1_fused_0 in T.thread_binding(1, thread="blockIdx.x"):
            for ax0_ax1_fused_1 in T.thread_binding(24, thread="threadIdx.x"):
                with T.sblock("T_multiply_red_init"):
                    v_ax0 = T.axis.spatial(2, (ax0_ax1_fused_0 * 24 + ax0_ax1_fused_1) // 12)
                    v_ax1 = T.axis.spatial(12, (ax0_ax1_fused_0 * 24 + ax0_ax1_fused_1) % 12)
                    T.reads()
                    T.writes(T_multiply_red[v_ax0, v_ax1])
                    T_multiply_red[v_ax0, v_ax1] = T.float32(0.0)
                for k2 in range(48):
                    with T.sblock("T_multiply_red_update"):
                        v_ax0 = T.axis.spatial(2, (ax0_ax1_fused_0 * 24 + ax0_ax1_fused_1) // 12)
                        v_ax1 = T.axis.spatial(12, (ax0_ax1_fused_0 * 24 + ax0_ax1_fused_1) % 12)
                        v_k2 = T.axis.reduce(48, k2)
                        T.reads(T_multiply_red[v_ax0, v_ax1], p29[v_ax0, v_ax1, v_k2])
                        T.writes(T_multiply_red[v_ax0, v_ax1])
                        T_multiply_red[v_ax0, v_ax1] = T_multiply_red[v_ax0, v_ax1] + p29[v_ax0, v_ax1, v_k2] * p29[v_ax0, v_ax1, v_k2]
        for ax0_ax1_ax2_fused_0 in T.thread_binding(2, thread="blockIdx.x"):
            for ax0_ax1_ax2_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
                with T.sblock("T_rms_norm"):
                    v_ax0 = T.axis.spatial(2, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) // 576)
                    v_ax1 = T.axis.spatial(12, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 576 // 48)
                    v_ax2 = T.axis.spatial(48, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 48)
                    T.where(ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1 < 1152)
                    T.reads(T_multiply_red[v_ax0, v_ax1], p29[v_ax0, v_ax1, v_ax2], p30[v_ax2])
                    T.writes(T_cast[v_ax0, v_ax1, v_ax2])
                    T_cast[v_ax0, v_ax1, v_ax2] = T.rsqrt(T_multiply_red[v_ax0, v_ax1] / T.float32(48.0) + T.float32(1.0000000000000001e-05)) * p29[v_ax0, v_ax1, v_ax2] * p30[v_ax2]
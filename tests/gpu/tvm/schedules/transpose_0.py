# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p75: T.Buffer((10, 12, 14), "float32"), T_transpose: T.Buffer((14, 10, 12), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for ax0_ax1_ax2_fused_0 in T.thread_binding(53, thread="blockIdx.x"):
            for ax0_ax1_ax2_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                with T.sblock("T_transpose"):
                    v_ax0 = T.axis.spatial(14, (ax0_ax1_ax2_fused_0 * 32 + ax0_ax1_ax2_fused_1) // 120)
                    v_ax1 = T.axis.spatial(10, (ax0_ax1_ax2_fused_0 * 32 + ax0_ax1_ax2_fused_1) % 120 // 12)
                    v_ax2 = T.axis.spatial(12, (ax0_ax1_ax2_fused_0 * 32 + ax0_ax1_ax2_fused_1) % 12)
                    T.where(ax0_ax1_ax2_fused_0 * 32 + ax0_ax1_ax2_fused_1 < 1680)
                    T.reads(p75[v_ax1, v_ax2, v_ax0])
                    T.writes(T_transpose[v_ax0, v_ax1, v_ax2])
                    T_transpose[v_ax0, v_ax1, v_ax2] = p75[v_ax1, v_ax2, v_ax0]
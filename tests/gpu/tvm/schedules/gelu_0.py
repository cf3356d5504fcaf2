# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p90: T.Buffer((30, 31), "float32"), T_multiply: T.Buffer((30, 31), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for ax0_ax1_fused_0 in T.thread_binding(30, thread="blockIdx.x"):
            for ax0_ax1_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                with T.sblock("T_multiply_2"):
                    v_ax0 = T.axis.spatial(30, (ax0_ax1_fused_0 * 32 + ax0_ax1_fused_1) // 31)
                    v_ax1 = T.axis.spatial(31, (ax0_ax1_fused_0 * 32 + ax0_ax1_fused_1) % 31)
                    T.where(ax0_ax1_fused_0 * 32 + ax0_ax1_fused_1 < 930)
                    T.reads(p90[v_ax0, v_ax1])
                    T.writes(T_multiply[v_ax0, v_ax1])
                    T_multiply[v_ax0, v_ax1] = p90[v_ax0, v_ax1] * T.float32(0.5) * (T.erf(p90[v_ax0, v_ax1] * T.float32(0.70710678000000005)) + T.float32(1.0))
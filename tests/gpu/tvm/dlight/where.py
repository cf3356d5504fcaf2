# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p61: T.Buffer((6, 9), "bool"), p62: T.Buffer((6, 9), "float32"), p63: T.Buffer((6, 9), "float32"), T_where: T.Buffer((6, 9), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        for ax0_ax1_fused_0 in T.thread_binding(1, thread="blockIdx.x"):
            for ax0_ax1_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
                with T.sblock("T_where"):
                    v0 = T.axis.spatial(6, (ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1) // 9)
                    v1 = T.axis.spatial(9, (ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1) % 9)
                    T.where(ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1 < 54)
                    T.reads(p61[v0, v1], p62[v0, v1], p63[v0, v1])
                    T.writes(T_where[v0, v1])
                    T_where[v0, v1] = T.Select(0 < T.Cast("int32", p61[v0, v1]), p62[v0, v1], p63[v0, v1])
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p61: T.Buffer((6, 9), "bool"), p62: T.Buffer((6, 9), "float32"), p63: T.Buffer((6, 9), "float32"), T_where: T.Buffer((6, 9), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for ax0, ax1 in T.grid(6, 9):
            with T.sblock("T_where"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(p61[v_ax0, v_ax1], p62[v_ax0, v_ax1], p63[v_ax0, v_ax1])
                T.writes(T_where[v_ax0, v_ax1])
                T_where[v_ax0, v_ax1] = T.Select(0 < T.Cast("int32", p61[v_ax0, v_ax1]), p62[v_ax0, v_ax1], p63[v_ax0, v_ax1])
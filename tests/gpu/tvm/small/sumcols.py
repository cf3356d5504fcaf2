# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p52: T.Buffer((64, 37), "float32"), p52_red: T.Buffer((37,), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for ax0, k0 in T.grid(37, 64):
            with T.sblock("p52_red"):
                v_ax0, v_k0 = T.axis.remap("SR", [ax0, k0])
                T.reads(p52[v_k0, v_ax0])
                T.writes(p52_red[v_ax0])
                with T.init():
                    p52_red[v_ax0] = T.float32(0.0)
                p52_red[v_ax0] = p52_red[v_ax0] + p52[v_k0, v_ax0]
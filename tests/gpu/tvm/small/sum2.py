# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p49: T.Buffer((4, 6, 5, 8), "float32"), p49_red: T.Buffer((4, 1, 5, 1), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for ax0, ax1, ax2, ax3, k1, k3 in T.grid(4, 1, 5, 1, 6, 8):
            with T.sblock("p49_red"):
                v_ax0, v_ax1, v_ax2, v_ax3, v_k1, v_k3 = T.axis.remap("SSSSRR", [ax0, ax1, ax2, ax3, k1, k3])
                T.reads(p49[v_ax0, v_k1, v_ax2, v_k3])
                T.writes(p49_red[v_ax0, v_ax1, v_ax2, v_ax3])
                with T.init():
                    p49_red[v_ax0, v_ax1, v_ax2, v_ax3] = T.float32(0.0)
                p49_red[v_ax0, v_ax1, v_ax2, v_ax3] = p49_red[v_ax0, v_ax1, v_ax2, v_ax3] + p49[v_ax0, v_k1, v_ax2, v_k3]
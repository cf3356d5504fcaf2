# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p47: T.Buffer((7, 50), "float32"), p47_red: T.Buffer((7,), "int32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        p47_red_temp_v0 = T.sblock_alloc_buffer((7,), "int32")
        p47_red_temp_v1 = T.sblock_alloc_buffer((7,))
        for ax0, k1 in T.grid(7, 50):
            with T.sblock("p47_red_temp"):
                v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
                T.reads(p47[v_ax0, v_k1])
                T.writes(p47_red_temp_v0[v_ax0], p47_red_temp_v1[v_ax0])
                with T.init():
                    p47_red_temp_v0[v_ax0] = -1
                    p47_red_temp_v1[v_ax0] = T.float32(-340282346638528859811704183484516925440.0)
                v_p47_red_temp_v0: T.let[T.int32] = T.Select(p47_red_temp_v1[v_ax0] > p47[v_ax0, v_k1] or p47_red_temp_v1[v_ax0] == p47[v_ax0, v_k1] and p47_red_temp_v0[v_ax0] < v_k1, p47_red_temp_v0[v_ax0], v_k1)
                v_p47_red_temp_v1: T.let[T.float32] = T.Select(p47_red_temp_v1[v_ax0] > p47[v_ax0, v_k1], p47_red_temp_v1[v_ax0], p47[v_ax0, v_k1])
                p47_red_temp_v0[v_ax0] = v_p47_red_temp_v0
                p47_red_temp_v1[v_ax0] = v_p47_red_temp_v1
        for ax0 in range(7):
            with T.sblock("p47_red"):
                v_ax0 = T.axis.spatial(7, ax0)
                T.reads(p47_red_temp_v0[v_ax0])
                T.writes(p47_red[v_ax0])
                p47_red[v_ax0] = p47_red_temp_v0[v_ax0]
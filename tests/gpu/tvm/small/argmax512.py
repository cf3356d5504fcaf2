# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p10: T.Buffer((4, 512), "float32"), p10_red: T.Buffer((4,), "int32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        p10_red_temp_v0 = T.sblock_alloc_buffer((4,), "int32")
        p10_red_temp_v1 = T.sblock_alloc_buffer((4,))
        for ax0, k1 in T.grid(4, 512):
            with T.sblock("p10_red_temp"):
                v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
                T.reads(p10[v_ax0, v_k1])
                T.writes(p10_red_temp_v0[v_ax0], p10_red_temp_v1[v_ax0])
                with T.init():
                    p10_red_temp_v0[v_ax0] = -1
                    p10_red_temp_v1[v_ax0] = T.float32(-340282346638528859811704183484516925440.0)
                v_p10_red_temp_v0: T.let[T.int32] = T.Select(p10_red_temp_v1[v_ax0] > p10[v_ax0, v_k1] or p10_red_temp_v1[v_ax0] == p10[v_ax0, v_k1] and p10_red_temp_v0[v_ax0] < v_k1, p10_red_temp_v0[v_ax0], v_k1)
                v_p10_red_temp_v1: T.let[T.float32] = T.Select(p10_red_temp_v1[v_ax0] > p10[v_ax0, v_k1], p10_red_temp_v1[v_ax0], p10[v_ax0, v_k1])
                p10_red_temp_v0[v_ax0] = v_p10_red_temp_v0
                p10_red_temp_v1[v_ax0] = v_p10_red_temp_v1
        for ax0 in range(4):
            with T.sblock("p10_red"):
                v_ax0 = T.axis.spatial(4, ax0)
                T.reads(p10_red_temp_v0[v_ax0])
                T.writes(p10_red[v_ax0])
                p10_red[v_ax0] = p10_red_temp_v0[v_ax0]
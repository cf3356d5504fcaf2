# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p112: T.Buffer((8, 100), "float32"), compute: T.Buffer((8,), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        p112_red = T.sblock_alloc_buffer((8,))
        for ax0, k1 in T.grid(8, 100):
            with T.sblock("p112_red"):
                v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
                T.reads(p112[v_ax0, v_k1])
                T.writes(p112_red[v_ax0])
                with T.init():
                    p112_red[v_ax0] = T.float32(0.0)
                p112_red[v_ax0] = p112_red[v_ax0] + p112[v_ax0, v_k1]
        for i0 in range(8):
            with T.sblock("compute"):
                v_i0 = T.axis.spatial(8, i0)
                T.reads(p112_red[v_i0])
                T.writes(compute[v_i0])
                compute[v_i0] = T.max(p112_red[v_i0], T.float32(0.0))
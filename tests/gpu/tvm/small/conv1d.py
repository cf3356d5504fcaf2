# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p9: T.Buffer((2, 5, 17), "float32"), p10: T.Buffer((7, 5, 3), "float32"), conv1d_ncw: T.Buffer((2, 7, 17), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        pad_temp = T.sblock_alloc_buffer((2, 5, 19))
        for i0, i1, i2 in T.grid(2, 5, 19):
            with T.sblock("pad_temp"):
                v_i0, v_i1, v_i2 = T.axis.remap("SSS", [i0, i1, i2])
                T.reads(p9[v_i0, v_i1, v_i2 - 1])
                T.writes(pad_temp[v_i0, v_i1, v_i2])
                pad_temp[v_i0, v_i1, v_i2] = T.if_then_else(1 <= v_i2 and v_i2 < 18, p9[v_i0, v_i1, v_i2 - 1], T.float32(0.0))
        for nn, ff, yy, rc, ry in T.grid(2, 7, 17, 5, 3):
            with T.sblock("conv1d_ncw"):
                v_nn, v_ff, v_yy, v_rc, v_ry = T.axis.remap("SSSRR", [nn, ff, yy, rc, ry])
                T.reads(pad_temp[v_nn, v_rc, v_yy + v_ry], p10[v_ff, v_rc, v_ry])
                T.writes(conv1d_ncw[v_nn, v_ff, v_yy])
                with T.init():
                    conv1d_ncw[v_nn, v_ff, v_yy] = T.float32(0.0)
                conv1d_ncw[v_nn, v_ff, v_yy] = conv1d_ncw[v_nn, v_ff, v_yy] + pad_temp[v_nn, v_rc, v_yy + v_ry] * p10[v_ff, v_rc, v_ry]
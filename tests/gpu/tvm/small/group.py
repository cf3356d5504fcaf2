# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p15: T.Buffer((1, 16, 9, 9), "float32"), p16: T.Buffer((24, 4, 3, 3), "float32"), group_conv2d_nchw: T.Buffer((1, 24, 9, 9), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        pad_temp = T.sblock_alloc_buffer((1, 16, 11, 11))
        for i0, i1, i2, i3 in T.grid(1, 16, 11, 11):
            with T.sblock("pad_temp"):
                v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(p15[v_i0, v_i1, v_i2 - 1, v_i3 - 1])
                T.writes(pad_temp[v_i0, v_i1, v_i2, v_i3])
                pad_temp[v_i0, v_i1, v_i2, v_i3] = T.if_then_else(1 <= v_i2 and v_i2 < 10 and 1 <= v_i3 and v_i3 < 10, p15[v_i0, v_i1, v_i2 - 1, v_i3 - 1], T.float32(0.0))
        for nn, ff, yy, xx, rc, ry, rx in T.grid(1, 24, 9, 9, 4, 3, 3):
            with T.sblock("group_conv2d_nchw"):
                v_nn, v_ff, v_yy, v_xx, v_rc, v_ry, v_rx = T.axis.remap("SSSSRRR", [nn, ff, yy, xx, rc, ry, rx])
                T.reads(pad_temp[v_nn, v_ff // 6 * 4 + v_rc, v_yy + v_ry, v_xx + v_rx], p16[v_ff, v_rc, v_ry, v_rx])
                T.writes(group_conv2d_nchw[v_nn, v_ff, v_yy, v_xx])
                with T.init():
                    group_conv2d_nchw[v_nn, v_ff, v_yy, v_xx] = T.float32(0.0)
                group_conv2d_nchw[v_nn, v_ff, v_yy, v_xx] = group_conv2d_nchw[v_nn, v_ff, v_yy, v_xx] + pad_temp[v_nn, v_ff // 6 * 4 + v_rc, v_yy + v_ry, v_xx + v_rx] * p16[v_ff, v_rc, v_ry, v_rx]
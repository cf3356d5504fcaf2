# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p17: T.Buffer((1, 6, 7, 7), "float32"), p18: T.Buffer((6, 5, 4, 4), "float32"), compute: T.Buffer((1, 5, 14, 14), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        data_dilate = T.sblock_alloc_buffer((1, 6, 13, 13))
        data_pad = T.sblock_alloc_buffer((1, 6, 17, 17))
        kernel_transform = T.sblock_alloc_buffer((5, 6, 4, 4))
        for i0, i1, i2, i3 in T.grid(1, 6, 13, 13):
            with T.sblock("data_dilate"):
                v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(p17[v_i0, v_i1, v_i2 // 2, v_i3 // 2])
                T.writes(data_dilate[v_i0, v_i1, v_i2, v_i3])
                data_dilate[v_i0, v_i1, v_i2, v_i3] = T.if_then_else(v_i2 % 2 == 0 and v_i3 % 2 == 0, p17[v_i0, v_i1, v_i2 // 2, v_i3 // 2], T.float32(0.0))
        for i0, i1, i2, i3 in T.grid(1, 6, 17, 17):
            with T.sblock("data_pad"):
                v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(data_dilate[v_i0, v_i1, v_i2 - 2, v_i3 - 2])
                T.writes(data_pad[v_i0, v_i1, v_i2, v_i3])
                data_pad[v_i0, v_i1, v_i2, v_i3] = T.if_then_else(2 <= v_i2 and v_i2 < 15 and 2 <= v_i3 and v_i3 < 15, data_dilate[v_i0, v_i1, v_i2 - 2, v_i3 - 2], T.float32(0.0))
        for o, i, h, w in T.grid(5, 6, 4, 4):
            with T.sblock("kernel_transform"):
                v_o, v_i, v_h, v_w = T.axis.remap("SSSS", [o, i, h, w])
                T.reads(p18[v_i, v_o, 3 - v_h, 3 - v_w])
                T.writes(kernel_transform[v_o, v_i, v_h, v_w])
                kernel_transform[v_o, v_i, v_h, v_w] = p18[v_i, v_o, 3 - v_h, 3 - v_w]
        for b, c, h, w, dc, dh, dw in T.grid(1, 5, 14, 14, 6, 4, 4):
            with T.sblock("compute"):
                v_b, v_c, v_h, v_w, v_dc, v_dh, v_dw = T.axis.remap("SSSSRRR", [b, c, h, w, dc, dh, dw])
                T.reads(data_pad[v_b, v_dc, v_h + v_dh, v_w + v_dw], kernel_transform[v_c, v_dc, v_dh, v_dw])
                T.writes(compute[v_b, v_c, v_h, v_w])
                with T.init():
                    compute[v_b, v_c, v_h, v_w] = T.float32(0.0)
                compute[v_b, v_c, v_h, v_w] = compute[v_b, v_c, v_h, v_w] + data_pad[v_b, v_dc, v_h + v_dh, v_w + v_dw] * kernel_transform[v_c, v_dc, v_dh, v_dw]
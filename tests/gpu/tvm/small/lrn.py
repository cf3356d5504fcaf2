# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p89: T.Buffer((1, 9, 6, 6), "float32"), T_divide: T.Buffer((1, 9, 6, 6), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        pad_data = T.sblock_alloc_buffer((1, 13, 6, 6))
        tensor = T.sblock_alloc_buffer((1, 9, 6, 6))
        tensor_1 = T.sblock_alloc_buffer((1, 9, 6, 6))
        for ax0, ax1, ax2, ax3 in T.grid(1, 13, 6, 6):
            with T.sblock("pad_data"):
                v_ax0, v_ax1, v_ax2, v_ax3 = T.axis.remap("SSSS", [ax0, ax1, ax2, ax3])
                T.reads(p89[v_ax0, v_ax1 - 2, v_ax2, v_ax3])
                T.writes(pad_data[v_ax0, v_ax1, v_ax2, v_ax3])
                pad_data[v_ax0, v_ax1, v_ax2, v_ax3] = T.if_then_else(2 <= v_ax1 and v_ax1 < 11, p89[v_ax0, v_ax1 - 2, v_ax2, v_ax3], T.float32(0.0))
        for ax0, ax1, ax2, ax3, rxs in T.grid(1, 9, 6, 6, 5):
            with T.sblock("tensor"):
                v_ax0, v_ax1, v_ax2, v_ax3, v_rxs = T.axis.remap("SSSSR", [ax0, ax1, ax2, ax3, rxs])
                T.reads(pad_data[v_ax0, v_ax1 + v_rxs, v_ax2, v_ax3])
                T.writes(tensor[v_ax0, v_ax1, v_ax2, v_ax3])
                with T.init():
                    tensor[v_ax0, v_ax1, v_ax2, v_ax3] = T.float32(0.0)
                tensor[v_ax0, v_ax1, v_ax2, v_ax3] = tensor[v_ax0, v_ax1, v_ax2, v_ax3] + pad_data[v_ax0, v_ax1 + v_rxs, v_ax2, v_ax3] * pad_data[v_ax0, v_ax1 + v_rxs, v_ax2, v_ax3]
        for ax0, ax1, ax2, ax3 in T.grid(1, 9, 6, 6):
            with T.sblock("tensor_1"):
                v_ax0, v_ax1, v_ax2, v_ax3 = T.axis.remap("SSSS", [ax0, ax1, ax2, ax3])
                T.reads(tensor[v_ax0, v_ax1, v_ax2, v_ax3])
                T.writes(tensor_1[v_ax0, v_ax1, v_ax2, v_ax3])
                tensor_1[v_ax0, v_ax1, v_ax2, v_ax3] = T.pow(T.float32(2.0) + T.float32(9.9999997473787516e-05) * tensor[v_ax0, v_ax1, v_ax2, v_ax3] / T.float32(5.0), T.float32(0.75))
        for ax0, ax1, ax2, ax3 in T.grid(1, 9, 6, 6):
            with T.sblock("T_divide"):
                v_ax0, v_ax1, v_ax2, v_ax3 = T.axis.remap("SSSS", [ax0, ax1, ax2, ax3])
                T.reads(p89[v_ax0, v_ax1, v_ax2, v_ax3], tensor_1[v_ax0, v_ax1, v_ax2, v_ax3])
                T.writes(T_divide[v_ax0, v_ax1, v_ax2, v_ax3])
                T_divide[v_ax0, v_ax1, v_ax2, v_ax3] = p89[v_ax0, v_ax1, v_ax2, v_ax3] / tensor_1[v_ax0, v_ax1, v_ax2, v_ax3]
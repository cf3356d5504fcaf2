# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p26: T.Buffer((2, 12, 48), "float32"), p27: T.Buffer((48,), "float32"), p28: T.Buffer((48,), "float32"), T_layer_norm: T.Buffer((2, 12, 48), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        p26_sum = T.sblock_alloc_buffer((2, 12))
        p26_mean = T.sblock_alloc_buffer((2, 12))
        p26_var_sum = T.sblock_alloc_buffer((2, 12))
        for ax0, ax1, k2 in T.grid(2, 12, 48):
            with T.sblock("p26_sum"):
                v_ax0, v_ax1, v_k2 = T.axis.remap("SSR", [ax0, ax1, k2])
                T.reads(p26[v_ax0, v_ax1, v_k2])
                T.writes(p26_sum[v_ax0, v_ax1])
                with T.init():
                    p26_sum[v_ax0, v_ax1] = T.float32(0.0)
                p26_sum[v_ax0, v_ax1] = p26_sum[v_ax0, v_ax1] + p26[v_ax0, v_ax1, v_k2]
        for ax0, ax1 in T.grid(2, 12):
            with T.sblock("p26_mean"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(p26_sum[v_ax0, v_ax1])
                T.writes(p26_mean[v_ax0, v_ax1])
                p26_mean[v_ax0, v_ax1] = p26_sum[v_ax0, v_ax1] / T.float32(48.0)
        for ax0, ax1, k2 in T.grid(2, 12, 48):
            with T.sblock("p26_var_sum"):
                v_ax0, v_ax1, v_k2 = T.axis.remap("SSR", [ax0, ax1, k2])
                T.reads(p26[v_ax0, v_ax1, v_k2], p26_mean[v_ax0, v_ax1])
                T.writes(p26_var_sum[v_ax0, v_ax1])
                with T.init():
                    p26_var_sum[v_ax0, v_ax1] = T.float32(0.0)
                p26_var_sum[v_ax0, v_ax1] = p26_var_sum[v_ax0, v_ax1] + (p26[v_ax0, v_ax1, v_k2] - p26_mean[v_ax0, v_ax1]) * (p26[v_ax0, v_ax1, v_k2] - p26_mean[v_ax0, v_ax1])
        for ax0, ax1, ax2 in T.grid(2, 12, 48):
            with T.sblock("T_layer_norm"):
                v_ax0, v_ax1, v_ax2 = T.axis.remap("SSS", [ax0, ax1, ax2])
                T.reads(p26[v_ax0, v_ax1, v_ax2], p26_mean[v_ax0, v_ax1], p26_var_sum[v_ax0, v_ax1], p27[v_ax2], p28[v_ax2])
                T.writes(T_layer_norm[v_ax0, v_ax1, v_ax2])
                T_layer_norm[v_ax0, v_ax1, v_ax2] = (p26[v_ax0, v_ax1, v_ax2] - p26_mean[v_ax0, v_ax1]) * T.rsqrt(p26_var_sum[v_ax0, v_ax1] / T.float32(48.0) + T.float32(1.0000000000000001e-05)) * p27[v_ax2] + p28[v_ax2]
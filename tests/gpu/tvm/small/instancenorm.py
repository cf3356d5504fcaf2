# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p34: T.Buffer((2, 16, 5, 5), "float32"), p35: T.Buffer((16,), "float32"), p36: T.Buffer((16,), "float32"), T_instance_norm: T.Buffer((2, 16, 5, 5), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        p34_red_temp_v0 = T.sblock_alloc_buffer((2, 16))
        p34_red_temp_v1 = T.sblock_alloc_buffer((2, 16))
        for ax0, ax1, k2, k3 in T.grid(2, 16, 5, 5):
            with T.sblock("p34_red_temp"):
                v_ax0, v_ax1, v_k2, v_k3 = T.axis.remap("SSRR", [ax0, ax1, k2, k3])
                T.reads(p34[v_ax0, v_ax1, v_k2, v_k3])
                T.writes(p34_red_temp_v0[v_ax0, v_ax1], p34_red_temp_v1[v_ax0, v_ax1])
                with T.init():
                    p34_red_temp_v0[v_ax0, v_ax1] = T.float32(0.0)
                    p34_red_temp_v1[v_ax0, v_ax1] = T.float32(0.0)
                v_p34_red_temp_v0: T.let[T.float32] = p34_red_temp_v0[v_ax0, v_ax1] + p34[v_ax0, v_ax1, v_k2, v_k3]
                v_p34_red_temp_v1: T.let[T.float32] = p34_red_temp_v1[v_ax0, v_ax1] + p34[v_ax0, v_ax1, v_k2, v_k3] * p34[v_ax0, v_ax1, v_k2, v_k3]
                p34_red_temp_v0[v_ax0, v_ax1] = v_p34_red_temp_v0
                p34_red_temp_v1[v_ax0, v_ax1] = v_p34_red_temp_v1
        for ax0, ax1, ax2, ax3 in T.grid(2, 16, 5, 5):
            with T.sblock("T_instance_norm"):
                v_ax0, v_ax1, v_ax2, v_ax3 = T.axis.remap("SSSS", [ax0, ax1, ax2, ax3])
                T.reads(p34[v_ax0, v_ax1, v_ax2, v_ax3], p34_red_temp_v0[v_ax0, v_ax1], p34_red_temp_v1[v_ax0, v_ax1], p35[v_ax1], p36[v_ax1])
                T.writes(T_instance_norm[v_ax0, v_ax1, v_ax2, v_ax3])
                T_instance_norm[v_ax0, v_ax1, v_ax2, v_ax3] = (p34[v_ax0, v_ax1, v_ax2, v_ax3] - p34_red_temp_v0[v_ax0, v_ax1] / T.float32(25.0)) * T.rsqrt(p34_red_temp_v1[v_ax0, v_ax1] / T.float32(25.0) - p34_red_temp_v0[v_ax0, v_ax1] / T.float32(25.0) * (p34_red_temp_v0[v_ax0, v_ax1] / T.float32(25.0)) + T.float32(1.0000000000000001e-05)) * p35[v_ax1] + p36[v_ax1]
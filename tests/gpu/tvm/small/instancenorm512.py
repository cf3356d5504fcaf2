# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p4: T.Buffer((2, 4, 16, 32), "float32"), p5: T.Buffer((4,), "float32"), p6: T.Buffer((4,), "float32"), T_instance_norm: T.Buffer((2, 4, 16, 32), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        p4_red_temp_v0 = T.sblock_alloc_buffer((2, 4))
        p4_red_temp_v1 = T.sblock_alloc_buffer((2, 4))
        for ax0, ax1, k2, k3 in T.grid(2, 4, 16, 32):
            with T.sblock("p4_red_temp"):
                v_ax0, v_ax1, v_k2, v_k3 = T.axis.remap("SSRR", [ax0, ax1, k2, k3])
                T.reads(p4[v_ax0, v_ax1, v_k2, v_k3])
                T.writes(p4_red_temp_v0[v_ax0, v_ax1], p4_red_temp_v1[v_ax0, v_ax1])
                with T.init():
                    p4_red_temp_v0[v_ax0, v_ax1] = T.float32(0.0)
                    p4_red_temp_v1[v_ax0, v_ax1] = T.float32(0.0)
                v_p4_red_temp_v0: T.let[T.float32] = p4_red_temp_v0[v_ax0, v_ax1] + p4[v_ax0, v_ax1, v_k2, v_k3]
                v_p4_red_temp_v1: T.let[T.float32] = p4_red_temp_v1[v_ax0, v_ax1] + p4[v_ax0, v_ax1, v_k2, v_k3] * p4[v_ax0, v_ax1, v_k2, v_k3]
                p4_red_temp_v0[v_ax0, v_ax1] = v_p4_red_temp_v0
                p4_red_temp_v1[v_ax0, v_ax1] = v_p4_red_temp_v1
        for ax0, ax1, ax2, ax3 in T.grid(2, 4, 16, 32):
            with T.sblock("T_instance_norm"):
                v_ax0, v_ax1, v_ax2, v_ax3 = T.axis.remap("SSSS", [ax0, ax1, ax2, ax3])
                T.reads(p4[v_ax0, v_ax1, v_ax2, v_ax3], p4_red_temp_v0[v_ax0, v_ax1], p4_red_temp_v1[v_ax0, v_ax1], p5[v_ax1], p6[v_ax1])
                T.writes(T_instance_norm[v_ax0, v_ax1, v_ax2, v_ax3])
                T_instance_norm[v_ax0, v_ax1, v_ax2, v_ax3] = (p4[v_ax0, v_ax1, v_ax2, v_ax3] - p4_red_temp_v0[v_ax0, v_ax1] / T.float32(512.0)) * T.rsqrt(p4_red_temp_v1[v_ax0, v_ax1] / T.float32(512.0) - p4_red_temp_v0[v_ax0, v_ax1] / T.float32(512.0) * (p4_red_temp_v0[v_ax0, v_ax1] / T.float32(512.0)) + T.float32(1.0000000000000001e-05)) * p5[v_ax1] + p6[v_ax1]
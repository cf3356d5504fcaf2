# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p49: T.Buffer((4, 6, 5, 8), "float32"), p49_red: T.Buffer((4, 1, 5, 1), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for ax0_ax1_ax2_ax3_fused_0 in T.thread_binding(1, thread="blockIdx.x"):
            for ax0_ax1_ax2_ax3_fused_1 in T.thread_binding(20, thread="threadIdx.x"):
                with T.sblock("p49_red_init"):
                    v_ax0 = T.axis.spatial(4, (ax0_ax1_ax2_ax3_fused_0 * 20 + ax0_ax1_ax2_ax3_fused_1) // 5)
                    v_ax1 = T.axis.spatial(1, 0)
                    v_ax2 = T.axis.spatial(5, (ax0_ax1_ax2_ax3_fused_0 * 20 + ax0_ax1_ax2_ax3_fused_1) % 5)
                    v_ax3 = T.axis.spatial(1, 0)
                    T.reads()
                    T.writes(p49_red[v_ax0, v_ax1, v_ax2, v_ax3])
                    p49_red[v_ax0, v_ax1, v_ax2, v_ax3] = T.float32(0.0)
                for k1, k3 in T.grid(6, 8):
                    with T.sblock("p49_red_update"):
                        v_ax0 = T.axis.spatial(4, (ax0_ax1_ax2_ax3_fused_0 * 20 + ax0_ax1_ax2_ax3_fused_1) // 5)
                        v_ax1 = T.axis.spatial(1, 0)
                        v_ax2 = T.axis.spatial(5, (ax0_ax1_ax2_ax3_fused_0 * 20 + ax0_ax1_ax2_ax3_fused_1) % 5)
                        v_ax3 = T.axis.spatial(1, 0)
                        v_k1, v_k3 = T.axis.remap("RR", [k1, k3])
                        T.reads(p49_red[v_ax0, v_ax1, v_ax2, v_ax3], p49[v_ax0, v_k1, v_ax2, v_k3])
                        T.writes(p49_red[v_ax0, v_ax1, v_ax2, v_ax3])
                        p49_red[v_ax0, v_ax1, v_ax2, v_ax3] = p49_red[v_ax0, v_ax1, v_ax2, v_ax3] + p49[v_ax0, v_k1, v_ax2, v_k3]
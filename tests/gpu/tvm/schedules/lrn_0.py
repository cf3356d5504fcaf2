# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p89: T.Buffer((1, 9, 6, 6), "float32"), T_divide: T.Buffer((1, 9, 6, 6), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        tensor = T.sblock_alloc_buffer((1, 9, 6, 6))
        for ax0_ax1_ax2_ax3_fused_0 in T.thread_binding(11, thread="blockIdx.x"):
            for ax0_ax1_ax2_ax3_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                with T.sblock("tensor_init"):
                    v_ax0 = T.axis.spatial(1, 0)
                    v_ax1 = T.axis.spatial(9, (ax0_ax1_ax2_ax3_fused_0 * 32 + ax0_ax1_ax2_ax3_fused_1) // 36)
                    v_ax2 = T.axis.spatial(6, (ax0_ax1_ax2_ax3_fused_0 * 32 + ax0_ax1_ax2_ax3_fused_1) % 36 // 6)
                    v_ax3 = T.axis.spatial(6, (ax0_ax1_ax2_ax3_fused_0 * 32 + ax0_ax1_ax2_ax3_fused_1) % 6)
                    T.where(ax0_ax1_ax2_ax3_fused_0 * 32 + ax0_ax1_ax2_ax3_fused_1 < 324)
                    T.reads()
                    T.writes(tensor[v_ax0, v_ax1, v_ax2, v_ax3])
                    tensor[v_ax0, v_ax1, v_ax2, v_ax3] = T.float32(0.0)
                for rxs in range(5):
                    with T.sblock("tensor_update"):
                        v_ax0 = T.axis.spatial(1, 0)
                        v_ax1 = T.axis.spatial(9, (ax0_ax1_ax2_ax3_fused_0 * 32 + ax0_ax1_ax2_ax3_fused_1) // 36)
                        v_ax2 = T.axis.spatial(6, (ax0_ax1_ax2_ax3_fused_0 * 32 + ax0_ax1_ax2_ax3_fused_1) % 36 // 6)
                        v_ax3 = T.axis.spatial(6, (ax0_ax1_ax2_ax3_fused_0 * 32 + ax0_ax1_ax2_ax3_fused_1) % 6)
                        v_rxs = T.axis.reduce(5, rxs)
                        T.where(ax0_ax1_ax2_ax3_fused_0 * 32 + ax0_ax1_ax2_ax3_fused_1 < 324)
                        T.reads(tensor[v_ax0, v_ax1, v_ax2, v_ax3], p89[v_ax0, v_ax1 + v_rxs - 2, v_ax2, v_ax3])
                        T.writes(tensor[v_ax0, v_ax1, v_ax2, v_ax3])
                        tensor[v_ax0, v_ax1, v_ax2, v_ax3] = tensor[v_ax0, v_ax1, v_ax2, v_ax3] + T.if_then_else(2 <= v_ax1 + v_rxs and v_ax1 + v_rxs < 11, p89[v_ax0, v_ax1 + v_rxs - 2, v_ax2, v_ax3], T.float32(0.0)) * T.if_then_else(2 <= v_ax1 + v_rxs and v_ax1 + v_rxs < 11, p89[v_ax0, v_ax1 + v_rxs - 2, v_ax2, v_ax3], T.float32(0.0))
        for ax0_ax1_ax2_ax3_fused_0 in T.thread_binding(2, thread="blockIdx.x"):
            for ax0_ax1_ax2_ax3_fused_1 in T.thread_binding(256, thread="threadIdx.x"):
                with T.sblock("tensor_1"):
                    v_ax0 = T.axis.spatial(1, 0)
                    v_ax1 = T.axis.spatial(9, (ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1) // 36)
                    v_ax2 = T.axis.spatial(6, (ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1) % 36 // 6)
                    v_ax3 = T.axis.spatial(6, (ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1) % 6)
                    T.where(ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1 < 324)
                    T.reads(p89[v_ax0, v_ax1, v_ax2, v_ax3], tensor[v_ax0, v_ax1, v_ax2, v_ax3])
                    T.writes(T_divide[v_ax0, v_ax1, v_ax2, v_ax3])
                    T_divide[v_ax0, v_ax1, v_ax2, v_ax3] = p89[v_ax0, v_ax1, v_ax2, v_ax3] / T.pow(T.float32(2.0) + T.float32(9.9999997473787516e-05) * tensor[v_ax0, v_ax1, v_ax2, v_ax3] / T.float32(5.0), T.float32(0.75))
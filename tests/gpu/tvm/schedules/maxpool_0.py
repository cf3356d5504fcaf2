# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p19: T.Buffer((1, 6, 13, 13), "float32"), pool_max: T.Buffer((1, 6, 7, 7), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for ax0_ax1_ax2_ax3_fused_0 in T.thread_binding(2, thread="blockIdx.x"):
            for ax0_ax1_ax2_ax3_fused_1 in T.thread_binding(256, thread="threadIdx.x"):
                with T.sblock("pool_max_init"):
                    v_ax0 = T.axis.spatial(1, 0)
                    v_ax1 = T.axis.spatial(6, (ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1) // 49)
                    v_ax2 = T.axis.spatial(7, (ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1) % 49 // 7)
                    v_ax3 = T.axis.spatial(7, (ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1) % 7)
                    T.where(ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1 < 294)
                    T.reads()
                    T.writes(pool_max[v_ax0, v_ax1, v_ax2, v_ax3])
                    pool_max[v_ax0, v_ax1, v_ax2, v_ax3] = T.float32(-3.4028235e+38)
                for rv0, rv1 in T.grid(3, 3):
                    with T.sblock("pool_max_update"):
                        v_ax0 = T.axis.spatial(1, 0)
                        v_ax1 = T.axis.spatial(6, (ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1) // 49)
                        v_ax2 = T.axis.spatial(7, (ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1) % 49 // 7)
                        v_ax3 = T.axis.spatial(7, (ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1) % 7)
                        v_rv0, v_rv1 = T.axis.remap("RR", [rv0, rv1])
                        T.where(ax0_ax1_ax2_ax3_fused_0 * 256 + ax0_ax1_ax2_ax3_fused_1 < 294)
                        T.reads(pool_max[v_ax0, v_ax1, v_ax2, v_ax3], p19[v_ax0, v_ax1, v_ax2 * 2 + v_rv0 - 1, v_ax3 * 2 + v_rv1 - 1])
                        T.writes(pool_max[v_ax0, v_ax1, v_ax2, v_ax3])
                        pool_max[v_ax0, v_ax1, v_ax2, v_ax3] = T.max(pool_max[v_ax0, v_ax1, v_ax2, v_ax3], T.if_then_else(1 <= v_ax2 * 2 + v_rv0 and v_ax2 * 2 + v_rv0 < 14 and 1 <= v_ax3 * 2 + v_rv1 and v_ax3 * 2 + v_rv1 < 14, p19[v_ax0, v_ax1, v_ax2 * 2 + v_rv0 - 1, v_ax3 * 2 + v_rv1 - 1], T.float32(-3.4028235e+38)))
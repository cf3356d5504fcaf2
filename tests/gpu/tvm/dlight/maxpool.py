# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p19: T.Buffer((1, 6, 13, 13), "float32"), pool_max: T.Buffer((1, 6, 7, 7), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        for ax0_ax1_ax2_fused_0 in T.thread_binding(1, thread="blockIdx.x"):
            for ax0_ax1_ax2_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
                with T.sblock("pool_max_init"):
                    v0 = T.axis.spatial(6, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) // 49)
                    v1 = T.axis.spatial(7, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 49 // 7)
                    v2 = T.axis.spatial(7, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 7)
                    T.where(ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1 < 294)
                    T.reads()
                    T.writes(pool_max[0, v0, v1, v2])
                    T.sblock_attr({"schedule_rule": "meta_schedule.pool_max"})
                    pool_max[0, v0, v1, v2] = T.float32(-340282346638528859811704183484516925440.0)
                for ax3, ax4 in T.grid(3, 3):
                    with T.sblock("pool_max_update"):
                        v0 = T.axis.spatial(6, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) // 49)
                        v1 = T.axis.spatial(7, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 49 // 7)
                        v2 = T.axis.spatial(7, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 7)
                        v3, v4 = T.axis.remap("RR", [ax3, ax4])
                        T.where(ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1 < 294)
                        T.reads(pool_max[0, v0, v1, v2], p19[0, v0, v1 * 2 + v3 - 1, v2 * 2 + v4 - 1])
                        T.writes(pool_max[0, v0, v1, v2])
                        T.sblock_attr({"schedule_rule": "meta_schedule.pool_max"})
                        pool_max[0, v0, v1, v2] = T.max(pool_max[0, v0, v1, v2], T.if_then_else(1 <= v1 * 2 + v3 and v1 * 2 + v3 < 14 and 1 <= v2 * 2 + v4 and v2 * 2 + v4 < 14, p19[0, v0, v1 * 2 + v3 - 1, v2 * 2 + v4 - 1], T.float32(-340282346638528859811704183484516925440.0)))
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p22: T.Buffer((2, 33, 7, 7), "float32"), adaptive_pool_avg: T.Buffer((2, 33, 1, 1), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        adaptive_pool_sum_local = T.sblock_alloc_buffer((2, 33, 1, 1), scope="local")
        adaptive_pool_sum_rf_local = T.sblock_alloc_buffer((32, 2, 33, 1, 1), scope="local")
        for ax0_ax1_fused in T.thread_binding(66, thread="blockIdx.x"):
            for ax2_ax3_fused_1 in T.thread_binding(32, thread="threadIdx.x", annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                with T.sblock("adaptive_pool_sum_rf_init"):
                    vax2_ax3_fused_1 = T.axis.spatial(32, ax2_ax3_fused_1)
                    v0 = T.axis.spatial(2, ax0_ax1_fused // 33)
                    v1 = T.axis.spatial(33, ax0_ax1_fused % 33)
                    T.reads()
                    T.writes(adaptive_pool_sum_rf_local[vax2_ax3_fused_1, v0, v1, 0, 0])
                    adaptive_pool_sum_rf_local[vax2_ax3_fused_1, v0, v1, 0, 0] = T.float32(0.0)
                for ax2_ax3_fused_0, u in T.grid(2, 1):
                    with T.sblock("adaptive_pool_sum_rf_update"):
                        vax2_ax3_fused_1 = T.axis.spatial(32, ax2_ax3_fused_1)
                        v0 = T.axis.spatial(2, ax0_ax1_fused // 33)
                        v1 = T.axis.spatial(33, ax0_ax1_fused % 33)
                        vax2_ax3_fused_0 = T.axis.reduce(2, ax2_ax3_fused_0)
                        T.where(ax2_ax3_fused_0 * 32 + ax2_ax3_fused_1 < 49)
                        T.reads(adaptive_pool_sum_rf_local[vax2_ax3_fused_1, v0, v1, 0, 0], p22[v0, v1, (vax2_ax3_fused_0 * 32 + vax2_ax3_fused_1) // 7, (vax2_ax3_fused_0 * 32 + vax2_ax3_fused_1) % 7])
                        T.writes(adaptive_pool_sum_rf_local[vax2_ax3_fused_1, v0, v1, 0, 0])
                        adaptive_pool_sum_rf_local[vax2_ax3_fused_1, v0, v1, 0, 0] = adaptive_pool_sum_rf_local[vax2_ax3_fused_1, v0, v1, 0, 0] + p22[v0, v1, (vax2_ax3_fused_0 * 32 + vax2_ax3_fused_1) // 7, (vax2_ax3_fused_0 * 32 + vax2_ax3_fused_1) % 7]
            for ax1_ax2_fused in range(1):
                for ax0 in T.thread_binding(32, thread="threadIdx.x"):
                    with T.sblock("adaptive_pool_sum"):
                        vax2_ax3_fused_1 = T.axis.reduce(32, ax0)
                        v0 = T.axis.spatial(2, ax0_ax1_fused // 33)
                        v1 = T.axis.spatial(33, ax0_ax1_fused % 33)
                        T.reads(adaptive_pool_sum_rf_local[vax2_ax3_fused_1, v0, v1, 0, 0])
                        T.writes(adaptive_pool_sum_local[v0, v1, 0, 0])
                        with T.init():
                            adaptive_pool_sum_local[v0, v1, 0, 0] = T.float32(0.0)
                        adaptive_pool_sum_local[v0, v1, 0, 0] = adaptive_pool_sum_local[v0, v1, 0, 0] + adaptive_pool_sum_rf_local[vax2_ax3_fused_1, v0, v1, 0, 0]
            for ax0, ax1 in T.grid(1, 1):
                with T.sblock("adaptive_pool_avg"):
                    v0 = T.axis.spatial(2, ax0_ax1_fused // 33 + ax0)
                    v1 = T.axis.spatial(33, ax0_ax1_fused % 33 + ax1)
                    T.reads(adaptive_pool_sum_local[v0, v1, 0, 0])
                    T.writes(adaptive_pool_avg[v0, v1, 0, 0])
                    T.sblock_attr({"schedule_rule": "meta_schedule.adaptive_pool_avg"})
                    adaptive_pool_avg[v0, v1, 0, 0] = adaptive_pool_sum_local[v0, v1, 0, 0] / T.float32(49.0)
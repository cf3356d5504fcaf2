# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p49: T.Buffer((4, 6, 5, 8), "float32"), p49_red: T.Buffer((4, 1, 5, 1), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        p49_red_rf_local = T.sblock_alloc_buffer((32, 4, 1, 5, 1), scope="local")
        for ax0_ax1_fused in T.thread_binding(20, thread="blockIdx.x"):
            for ax2_ax3_fused_1 in T.thread_binding(32, thread="threadIdx.x", annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                with T.sblock("p49_red_rf_init"):
                    vax2_ax3_fused_1 = T.axis.spatial(32, ax2_ax3_fused_1)
                    v0 = T.axis.spatial(4, ax0_ax1_fused // 5)
                    v1 = T.axis.spatial(5, ax0_ax1_fused % 5)
                    T.reads()
                    T.writes(p49_red_rf_local[vax2_ax3_fused_1, v0, 0, v1, 0])
                    p49_red_rf_local[vax2_ax3_fused_1, v0, 0, v1, 0] = T.float32(0.0)
                for ax2_ax3_fused_0, u in T.grid(2, 1):
                    with T.sblock("p49_red_rf_update"):
                        vax2_ax3_fused_1 = T.axis.spatial(32, ax2_ax3_fused_1)
                        v0 = T.axis.spatial(4, ax0_ax1_fused // 5)
                        v1 = T.axis.spatial(5, ax0_ax1_fused % 5)
                        vax2_ax3_fused_0 = T.axis.reduce(2, ax2_ax3_fused_0)
                        T.where(ax2_ax3_fused_0 * 32 + ax2_ax3_fused_1 < 48)
                        T.reads(p49_red_rf_local[vax2_ax3_fused_1, v0, 0, v1, 0], p49[v0, (vax2_ax3_fused_0 * 32 + vax2_ax3_fused_1) // 8, v1, (vax2_ax3_fused_0 * 32 + vax2_ax3_fused_1) % 8])
                        T.writes(p49_red_rf_local[vax2_ax3_fused_1, v0, 0, v1, 0])
                        p49_red_rf_local[vax2_ax3_fused_1, v0, 0, v1, 0] = p49_red_rf_local[vax2_ax3_fused_1, v0, 0, v1, 0] + p49[v0, (vax2_ax3_fused_0 * 32 + vax2_ax3_fused_1) // 8, v1, (vax2_ax3_fused_0 * 32 + vax2_ax3_fused_1) % 8]
            for ax1_ax2_fused in range(1):
                for ax0 in T.thread_binding(32, thread="threadIdx.x"):
                    with T.sblock("p49_red"):
                        vax2_ax3_fused_1 = T.axis.reduce(32, ax0)
                        v0 = T.axis.spatial(4, ax0_ax1_fused // 5)
                        v1 = T.axis.spatial(5, ax0_ax1_fused % 5)
                        T.reads(p49_red_rf_local[vax2_ax3_fused_1, v0, 0, v1, 0])
                        T.writes(p49_red[v0, 0, v1, 0])
                        with T.init():
                            p49_red[v0, 0, v1, 0] = T.float32(0.0)
                        p49_red[v0, 0, v1, 0] = p49_red[v0, 0, v1, 0] + p49_red_rf_local[vax2_ax3_fused_1, v0, 0, v1, 0]
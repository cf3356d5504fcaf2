# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p29: T.Buffer((2, 12, 48), "float32"), p30: T.Buffer((48,), "float32"), T_cast: T.Buffer((2, 12, 48), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        T_multiply_red_shared = T.sblock_alloc_buffer((2, 12), scope="shared")
        T_multiply_red_rf_local = T.sblock_alloc_buffer((32, 2, 12), scope="local")
        for ax0_ax1_fused in T.thread_binding(24, thread="blockIdx.x"):
            for ax2_fused_1 in T.thread_binding(32, thread="threadIdx.x", annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                with T.sblock("T_multiply_red_rf_init"):
                    vax2_fused_1 = T.axis.spatial(32, ax2_fused_1)
                    v0 = T.axis.spatial(2, ax0_ax1_fused // 12)
                    v1 = T.axis.spatial(12, ax0_ax1_fused % 12)
                    T.reads()
                    T.writes(T_multiply_red_rf_local[vax2_fused_1, v0, v1])
                    T_multiply_red_rf_local[vax2_fused_1, v0, v1] = T.float32(0.0)
                for ax2_fused_0, u in T.grid(2, 1):
                    with T.sblock("T_multiply_red_rf_update"):
                        vax2_fused_1 = T.axis.spatial(32, ax2_fused_1)
                        v0 = T.axis.spatial(2, ax0_ax1_fused // 12)
                        v1 = T.axis.spatial(12, ax0_ax1_fused % 12)
                        vax2_fused_0 = T.axis.reduce(2, ax2_fused_0)
                        T.where(ax2_fused_0 * 32 + ax2_fused_1 < 48)
                        T.reads(T_multiply_red_rf_local[vax2_fused_1, v0, v1], p29[v0, v1, vax2_fused_0 * 32 + vax2_fused_1])
                        T.writes(T_multiply_red_rf_local[vax2_fused_1, v0, v1])
                        T_multiply_red_rf_local[vax2_fused_1, v0, v1] = T_multiply_red_rf_local[vax2_fused_1, v0, v1] + p29[v0, v1, vax2_fused_0 * 32 + vax2_fused_1] * p29[v0, v1, vax2_fused_0 * 32 + vax2_fused_1]
            for ax1_ax2_fused in range(1):
                for ax0 in T.thread_binding(32, thread="threadIdx.x"):
                    with T.sblock("T_multiply_red"):
                        vax2_fused_1 = T.axis.reduce(32, ax0)
                        v0 = T.axis.spatial(2, ax0_ax1_fused // 12)
                        v1 = T.axis.spatial(12, ax0_ax1_fused % 12)
                        T.reads(T_multiply_red_rf_local[vax2_fused_1, v0, v1])
                        T.writes(T_multiply_red_shared[v0, v1])
                        with T.init():
                            T_multiply_red_shared[v0, v1] = T.float32(0.0)
                        T_multiply_red_shared[v0, v1] = T_multiply_red_shared[v0, v1] + T_multiply_red_rf_local[vax2_fused_1, v0, v1]
            for ax0_ax1_ax2_fused_0 in range(2):
                for ax0_ax1_ax2_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                    with T.sblock("T_cast_2"):
                        v0 = T.axis.spatial(2, ax0_ax1_fused // 12)
                        v1 = T.axis.spatial(12, ax0_ax1_fused % 12)
                        v2 = T.axis.spatial(48, ax0_ax1_ax2_fused_0 * 32 + ax0_ax1_ax2_fused_1)
                        T.where(ax0_ax1_ax2_fused_0 * 32 + ax0_ax1_ax2_fused_1 < 48)
                        T.reads(T_multiply_red_shared[v0, v1], p29[v0, v1, v2], p30[v2])
                        T.writes(T_cast[v0, v1, v2])
                        T_cast[v0, v1, v2] = T.rsqrt(T_multiply_red_shared[v0, v1] / T.float32(48.0) + T.float32(1.0000000000000001e-05)) * p29[v0, v1, v2] * p30[v2]
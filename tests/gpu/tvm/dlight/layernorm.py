# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p26: T.Buffer((2, 12, 48), "float32"), p27: T.Buffer((48,), "float32"), p28: T.Buffer((48,), "float32"), T_layer_norm: T.Buffer((2, 12, 48), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        p26_sum_shared = T.sblock_alloc_buffer((2, 12), scope="shared")
        p26_var_sum_shared = T.sblock_alloc_buffer((2, 12), scope="shared")
        for ax0_ax1_fused in T.thread_binding(24, thread="blockIdx.x"):
            for ax0, ax1 in T.grid(1, 1):
                for ax2_fused_1 in T.thread_binding(256, thread="threadIdx.x"):
                    for ax2_fused_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("p26_sum"):
                            v0 = T.axis.spatial(2, ax0_ax1_fused // 12 + ax0)
                            v1 = T.axis.spatial(12, ax0_ax1_fused % 12 + ax1)
                            v2 = T.axis.reduce(48, ax2_fused_0 * 256 + ax2_fused_1)
                            T.where(ax2_fused_0 * 256 + ax2_fused_1 < 48)
                            T.reads(p26[v0, v1, v2])
                            T.writes(p26_sum_shared[v0, v1])
                            with T.init():
                                p26_sum_shared[v0, v1] = T.float32(0.0)
                            p26_sum_shared[v0, v1] = p26_sum_shared[v0, v1] + p26[v0, v1, v2]
            for ax0, ax1 in T.grid(1, 1):
                for ax2_fused_1 in T.thread_binding(256, thread="threadIdx.x"):
                    for ax2_fused_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("p26_var_sum"):
                            v0 = T.axis.spatial(2, ax0_ax1_fused // 12 + ax0)
                            v1 = T.axis.spatial(12, ax0_ax1_fused % 12 + ax1)
                            v2 = T.axis.reduce(48, ax2_fused_0 * 256 + ax2_fused_1)
                            T.where(ax2_fused_0 * 256 + ax2_fused_1 < 48)
                            T.reads(p26[v0, v1, v2], p26_sum_shared[v0, v1])
                            T.writes(p26_var_sum_shared[v0, v1])
                            with T.init():
                                p26_var_sum_shared[v0, v1] = T.float32(0.0)
                            p26_var_sum_shared[v0, v1] = p26_var_sum_shared[v0, v1] + (p26[v0, v1, v2] - p26_sum_shared[v0, v1] / T.float32(48.0)) * (p26[v0, v1, v2] - p26_sum_shared[v0, v1] / T.float32(48.0))
            for ax2_1 in T.thread_binding(256, thread="threadIdx.x"):
                for ax2_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                    with T.sblock("T_layer_norm"):
                        v0 = T.axis.spatial(2, ax0_ax1_fused // 12)
                        v1 = T.axis.spatial(12, ax0_ax1_fused % 12)
                        v2 = T.axis.spatial(48, ax2_0 * 256 + ax2_1)
                        T.where(ax2_0 * 256 + ax2_1 < 48)
                        T.reads(p26[v0, v1, v2], p26_sum_shared[v0, v1], p26_var_sum_shared[v0, v1], p27[v2], p28[v2])
                        T.writes(T_layer_norm[v0, v1, v2])
                        T_layer_norm[v0, v1, v2] = (p26[v0, v1, v2] - p26_sum_shared[v0, v1] / T.float32(48.0)) * T.rsqrt(p26_var_sum_shared[v0, v1] / T.float32(48.0) + T.float32(1.0000000000000001e-05)) * p27[v2] + p28[v2]
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p34: T.Buffer((2, 16, 5, 5), "float32"), p35: T.Buffer((16,), "float32"), p36: T.Buffer((16,), "float32"), T_instance_norm: T.Buffer((2, 16, 5, 5), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        p34_red_temp_v0_shared = T.sblock_alloc_buffer((2, 16), scope="shared")
        p34_red_temp_v1_shared = T.sblock_alloc_buffer((2, 16), scope="shared")
        for ax0_ax1_fused in T.thread_binding(32, thread="blockIdx.x"):
            for ax0, ax1 in T.grid(1, 1):
                for ax2_ax3_fused_1 in T.thread_binding(256, thread="threadIdx.x"):
                    for ax2_ax3_fused_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("p34_red_temp"):
                            v0 = T.axis.spatial(2, ax0_ax1_fused // 16 + ax0)
                            v1 = T.axis.spatial(16, ax0_ax1_fused % 16 + ax1)
                            v2 = T.axis.reduce(5, (ax2_ax3_fused_0 * 256 + ax2_ax3_fused_1) // 5)
                            v3 = T.axis.reduce(5, (ax2_ax3_fused_0 * 256 + ax2_ax3_fused_1) % 5)
                            T.where(ax2_ax3_fused_0 * 256 + ax2_ax3_fused_1 < 25)
                            T.reads(p34[v0, v1, v2, v3])
                            T.writes(p34_red_temp_v0_shared[v0, v1], p34_red_temp_v1_shared[v0, v1])
                            with T.init():
                                p34_red_temp_v0_shared[v0, v1] = T.float32(0.0)
                                p34_red_temp_v1_shared[v0, v1] = T.float32(0.0)
                            v_p34_red_temp_v0: T.let[T.float32] = p34_red_temp_v0_shared[v0, v1] + p34[v0, v1, v2, v3]
                            v_p34_red_temp_v1: T.let[T.float32] = p34_red_temp_v1_shared[v0, v1] + p34[v0, v1, v2, v3] * p34[v0, v1, v2, v3]
                            p34_red_temp_v0_shared[v0, v1] = v_p34_red_temp_v0
                            p34_red_temp_v1_shared[v0, v1] = v_p34_red_temp_v1
            for ax2 in range(5):
                for ax3_1 in T.thread_binding(256, thread="threadIdx.x"):
                    for ax3_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("T_instance_norm"):
                            v0 = T.axis.spatial(2, ax0_ax1_fused // 16)
                            v1 = T.axis.spatial(16, ax0_ax1_fused % 16)
                            v2 = T.axis.spatial(5, ax2)
                            v3 = T.axis.spatial(5, ax3_0 * 256 + ax3_1)
                            T.where(ax3_0 * 256 + ax3_1 < 5)
                            T.reads(p34[v0, v1, v2, v3], p34_red_temp_v0_shared[v0, v1], p34_red_temp_v1_shared[v0, v1], p35[v1], p36[v1])
                            T.writes(T_instance_norm[v0, v1, v2, v3])
                            T_instance_norm[v0, v1, v2, v3] = (p34[v0, v1, v2, v3] - p34_red_temp_v0_shared[v0, v1] / T.float32(25.0)) * T.rsqrt(p34_red_temp_v1_shared[v0, v1] / T.float32(25.0) - p34_red_temp_v0_shared[v0, v1] / T.float32(25.0) * (p34_red_temp_v0_shared[v0, v1] / T.float32(25.0)) + T.float32(1.0000000000000001e-05)) * p35[v1] + p36[v1]
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p4: T.Buffer((2, 4, 16, 32), "float32"), p5: T.Buffer((4,), "float32"), p6: T.Buffer((4,), "float32"), T_instance_norm: T.Buffer((2, 4, 16, 32), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        p4_red_temp_v0_shared = T.sblock_alloc_buffer((2, 4), scope="shared")
        p4_red_temp_v1_shared = T.sblock_alloc_buffer((2, 4), scope="shared")
        for ax0_ax1_fused in T.thread_binding(8, thread="blockIdx.x"):
            for ax0, ax1 in T.grid(1, 1):
                for ax2_ax3_fused_1 in T.thread_binding(256, thread="threadIdx.x"):
                    for ax2_ax3_fused_0 in T.serial(2, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("p4_red_temp"):
                            v0 = T.axis.spatial(2, ax0_ax1_fused // 4 + ax0)
                            v1 = T.axis.spatial(4, ax0_ax1_fused % 4 + ax1)
                            v2 = T.axis.reduce(16, (ax2_ax3_fused_0 * 256 + ax2_ax3_fused_1) // 32)
                            v3 = T.axis.reduce(32, (ax2_ax3_fused_0 * 256 + ax2_ax3_fused_1) % 32)
                            T.reads(p4[v0, v1, v2, v3])
                            T.writes(p4_red_temp_v0_shared[v0, v1], p4_red_temp_v1_shared[v0, v1])
                            with T.init():
                                p4_red_temp_v0_shared[v0, v1] = T.float32(0.0)
                                p4_red_temp_v1_shared[v0, v1] = T.float32(0.0)
                            v_p4_red_temp_v0: T.let[T.float32] = p4_red_temp_v0_shared[v0, v1] + p4[v0, v1, v2, v3]
                            v_p4_red_temp_v1: T.let[T.float32] = p4_red_temp_v1_shared[v0, v1] + p4[v0, v1, v2, v3] * p4[v0, v1, v2, v3]
                            p4_red_temp_v0_shared[v0, v1] = v_p4_red_temp_v0
                            p4_red_temp_v1_shared[v0, v1] = v_p4_red_temp_v1
            for ax2 in range(16):
                for ax3_1 in T.thread_binding(256, thread="threadIdx.x"):
                    for ax3_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("T_instance_norm"):
                            v0 = T.axis.spatial(2, ax0_ax1_fused // 4)
                            v1 = T.axis.spatial(4, ax0_ax1_fused % 4)
                            v2 = T.axis.spatial(16, ax2)
                            v3 = T.axis.spatial(32, ax3_0 * 256 + ax3_1)
                            T.where(ax3_0 * 256 + ax3_1 < 32)
                            T.reads(p4[v0, v1, v2, v3], p4_red_temp_v0_shared[v0, v1], p4_red_temp_v1_shared[v0, v1], p5[v1], p6[v1])
                            T.writes(T_instance_norm[v0, v1, v2, v3])
                            T_instance_norm[v0, v1, v2, v3] = (p4[v0, v1, v2, v3] - p4_red_temp_v0_shared[v0, v1] / T.float32(512.0)) * T.rsqrt(p4_red_temp_v1_shared[v0, v1] / T.float32(512.0) - p4_red_temp_v0_shared[v0, v1] / T.float32(512.0) * (p4_red_temp_v0_shared[v0, v1] / T.float32(512.0)) + T.float32(1.0000000000000001e-05)) * p5[v1] + p6[v1]
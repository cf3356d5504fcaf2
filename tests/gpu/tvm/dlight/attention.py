# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p103: T.Buffer((2, 24, 16), "float32"), p104: T.Buffer((2, 24, 16), "float32"), p105: T.Buffer((2, 24, 16), "float32"), T_batch_matmul_NN: T.Buffer((2, 24, 16), "float32")):
        T.func_attr({"layout_free_buffers": [1, 2], "tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        T_batch_matmul_NT = T.sblock_alloc_buffer((2, 24, 24))
        T_softmax_maxelem = T.sblock_alloc_buffer((2, 24))
        T_softmax_expsum = T.sblock_alloc_buffer((2, 24))
        for ax0_ax1_ax2_fused_0 in T.thread_binding(2, thread="blockIdx.x"):
            for ax0_ax1_ax2_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
                with T.sblock("T_batch_matmul_NT_init"):
                    v0 = T.axis.spatial(2, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) // 576)
                    v1 = T.axis.spatial(24, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 576 // 24)
                    v2 = T.axis.spatial(24, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 24)
                    T.where(ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1 < 1152)
                    T.reads()
                    T.writes(T_batch_matmul_NT[v0, v1, v2])
                    T_batch_matmul_NT[v0, v1, v2] = T.float32(0.0)
                for ax3 in range(16):
                    with T.sblock("T_batch_matmul_NT_update"):
                        v0 = T.axis.spatial(2, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) // 576)
                        v1 = T.axis.spatial(24, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 576 // 24)
                        v2 = T.axis.spatial(24, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 24)
                        v3 = T.axis.reduce(16, ax3)
                        T.where(ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1 < 1152)
                        T.reads(T_batch_matmul_NT[v0, v1, v2], p103[v0, v1, v3], p104[v0, v2, v3])
                        T.writes(T_batch_matmul_NT[v0, v1, v2])
                        T_batch_matmul_NT[v0, v1, v2] = T_batch_matmul_NT[v0, v1, v2] + p103[v0, v1, v3] * p104[v0, v2, v3]
        for ax0_ax1_fused_0 in T.thread_binding(1, thread="blockIdx.x"):
            for ax0_ax1_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
                with T.sblock("T_softmax_maxelem_init"):
                    v0 = T.axis.spatial(2, (ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1) // 24)
                    v1 = T.axis.spatial(24, (ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1) % 24)
                    T.where(ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1 < 48)
                    T.reads()
                    T.writes(T_softmax_maxelem[v0, v1])
                    T_softmax_maxelem[v0, v1] = T.float32(-340282346638528859811704183484516925440.0)
                for ax2 in range(24):
                    with T.sblock("T_softmax_maxelem_update"):
                        v0 = T.axis.spatial(2, (ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1) // 24)
                        v1 = T.axis.spatial(24, (ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1) % 24)
                        v2 = T.axis.reduce(24, ax2)
                        T.where(ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1 < 48)
                        T.reads(T_softmax_maxelem[v0, v1], T_batch_matmul_NT[v0, v1, v2])
                        T.writes(T_softmax_maxelem[v0, v1])
                        T_softmax_maxelem[v0, v1] = T.max(T_softmax_maxelem[v0, v1], T_batch_matmul_NT[v0, v1, v2] * T.float32(0.25))
        for ax0_ax1_fused_0 in T.thread_binding(1, thread="blockIdx.x"):
            for ax0_ax1_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
                with T.sblock("T_softmax_expsum_init"):
                    v0 = T.axis.spatial(2, (ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1) // 24)
                    v1 = T.axis.spatial(24, (ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1) % 24)
                    T.where(ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1 < 48)
                    T.reads()
                    T.writes(T_softmax_expsum[v0, v1])
                    T_softmax_expsum[v0, v1] = T.float32(0.0)
                for ax2 in range(24):
                    with T.sblock("T_softmax_expsum_update"):
                        v0 = T.axis.spatial(2, (ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1) // 24)
                        v1 = T.axis.spatial(24, (ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1) % 24)
                        v2 = T.axis.reduce(24, ax2)
                        T.where(ax0_ax1_fused_0 * 1024 + ax0_ax1_fused_1 < 48)
                        T.reads(T_softmax_expsum[v0, v1], T_batch_matmul_NT[v0, v1, v2], T_softmax_maxelem[v0, v1])
                        T.writes(T_softmax_expsum[v0, v1])
                        T_softmax_expsum[v0, v1] = T_softmax_expsum[v0, v1] + T.exp(T_batch_matmul_NT[v0, v1, v2] * T.float32(0.25) - T_softmax_maxelem[v0, v1])
        for ax0_ax1_ax2_fused_0 in T.thread_binding(1, thread="blockIdx.x"):
            for ax0_ax1_ax2_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
                with T.sblock("T_batch_matmul_NN_init"):
                    v0 = T.axis.spatial(2, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) // 384)
                    v1 = T.axis.spatial(24, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 384 // 16)
                    v2 = T.axis.spatial(16, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 16)
                    T.where(ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1 < 768)
                    T.reads()
                    T.writes(T_batch_matmul_NN[v0, v1, v2])
                    T_batch_matmul_NN[v0, v1, v2] = T.float32(0.0)
                for ax3 in range(24):
                    with T.sblock("T_batch_matmul_NN_update"):
                        v0 = T.axis.spatial(2, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) // 384)
                        v1 = T.axis.spatial(24, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 384 // 16)
                        v2 = T.axis.spatial(16, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 16)
                        v3 = T.axis.reduce(24, ax3)
                        T.where(ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1 < 768)
                        T.reads(T_batch_matmul_NN[v0, v1, v2], T_batch_matmul_NT[v0, v1, v3], T_softmax_maxelem[v0, v1], T_softmax_expsum[v0, v1], p105[v0, v3, v2])
                        T.writes(T_batch_matmul_NN[v0, v1, v2])
                        T_batch_matmul_NN[v0, v1, v2] = T_batch_matmul_NN[v0, v1, v2] + T.exp(T_batch_matmul_NT[v0, v1, v3] * T.float32(0.25) - T_softmax_maxelem[v0, v1]) / T_softmax_expsum[v0, v1] * p105[v0, v3, v2]
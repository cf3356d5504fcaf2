# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p23: T.Buffer((12, 65), "float32"), T_softmax_norm: T.Buffer((12, 65), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        T_softmax_maxelem = T.sblock_alloc_buffer((12,))
        T_softmax_expsum = T.sblock_alloc_buffer((12,))
        for i0_fused in T.thread_binding(12, thread="blockIdx.x", annotations={"pragma_auto_unroll_max_step": 1024, "pragma_unroll_explicit": 1}):
            for k_0 in range(17):
                for k_1 in T.thread_binding(4, thread="threadIdx.x"):
                    with T.sblock("T_softmax_maxelem"):
                        v_i0 = T.axis.spatial(12, i0_fused)
                        v_k = T.axis.reduce(65, k_0 * 4 + k_1)
                        T.where(k_0 * 4 + k_1 < 65)
                        T.reads(p23[v_i0, v_k])
                        T.writes(T_softmax_maxelem[v_i0])
                        with T.init():
                            T_softmax_maxelem[v_i0] = T.float32(-3.4028235e+38)
                        T_softmax_maxelem[v_i0] = T.max(T_softmax_maxelem[v_i0], p23[v_i0, v_k])
        for i0_fused_0 in T.thread_binding(1, thread="blockIdx.x", annotations={"pragma_auto_unroll_max_step": 1024, "pragma_unroll_explicit": 1}):
            for i0_fused_1 in T.thread_binding(12, thread="threadIdx.x"):
                with T.sblock("T_softmax_expsum_init"):
                    v_i0 = T.axis.spatial(12, i0_fused_0 * 12 + i0_fused_1)
                    T.reads()
                    T.writes(T_softmax_expsum[v_i0])
                    T_softmax_expsum[v_i0] = T.float32(0.0)
                for k in range(65):
                    with T.sblock("T_softmax_expsum_update"):
                        v_i0 = T.axis.spatial(12, i0_fused_0 * 12 + i0_fused_1)
                        v_k = T.axis.reduce(65, k)
                        T.reads(T_softmax_expsum[v_i0], p23[v_i0, v_k], T_softmax_maxelem[v_i0])
                        T.writes(T_softmax_expsum[v_i0])
                        T_softmax_expsum[v_i0] = T_softmax_expsum[v_i0] + T.exp(p23[v_i0, v_k] - T_softmax_maxelem[v_i0])
        for i0_i1_fused_0 in T.thread_binding(25, thread="blockIdx.x"):
            for i0_i1_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                with T.sblock("T_softmax_norm"):
                    v_i0 = T.axis.spatial(12, (i0_i1_fused_0 * 32 + i0_i1_fused_1) // 65)
                    v_i1 = T.axis.spatial(65, (i0_i1_fused_0 * 32 + i0_i1_fused_1) % 65)
                    T.where(i0_i1_fused_0 * 32 + i0_i1_fused_1 < 780)
                    T.reads(p23[v_i0, v_i1], T_softmax_maxelem[v_i0], T_softmax_expsum[v_i0])
                    T.writes(T_softmax_norm[v_i0, v_i1])
                    T.sblock_attr({"axis": 1})
                    T_softmax_norm[v_i0, v_i1] = T.exp(p23[v_i0, v_i1] - T_softmax_maxelem[v_i0]) / T_softmax_expsum[v_i0]
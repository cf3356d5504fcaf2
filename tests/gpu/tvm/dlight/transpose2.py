# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p76: T.Buffer((64, 48), "float32"), T_transpose: T.Buffer((48, 64), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        p76_shared = T.sblock_alloc_buffer((64, 48), scope="shared")
        for ax0_0_0 in T.thread_binding(6, thread="blockIdx.y", annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
            for ax1_0 in T.thread_binding(4, thread="blockIdx.x"):
                for ax0_ax1_fused_0 in range(1):
                    for ax0_ax1_fused_1 in T.thread_binding(8, thread="threadIdx.y"):
                        for ax0_ax1_fused_2 in T.thread_binding(16, thread="threadIdx.x"):
                            for ax0_ax1_fused_3 in T.unroll(1):
                                with T.sblock("p76_shared"):
                                    v0 = T.axis.spatial(64, ax1_0 * 16 + (ax0_ax1_fused_0 * 128 + ax0_ax1_fused_1 * 16 + ax0_ax1_fused_2 + ax0_ax1_fused_3) // 8)
                                    v1 = T.axis.spatial(48, ax0_0_0 * 8 + (ax0_ax1_fused_0 * 128 + ax0_ax1_fused_1 * 16 + ax0_ax1_fused_2 + ax0_ax1_fused_3) % 8)
                                    T.reads(p76[v0, v1])
                                    T.writes(p76_shared[v0, v1])
                                    T.sblock_attr({"buffer_dim_align": [[0, 0, 32, 1]]})
                                    p76_shared[v0, v1] = p76[v0, v1]
                for ax0_0_1 in T.thread_binding(8, thread="threadIdx.y"):
                    for ax1_1 in T.thread_binding(16, thread="threadIdx.x"):
                        for ax0_1_0, ax0_1_1 in T.grid(1, 1):
                            with T.sblock("T_transpose"):
                                v0 = T.axis.spatial(48, ax0_0_0 * 8 + ax0_0_1 + ax0_1_0 + ax0_1_1)
                                v1 = T.axis.spatial(64, ax1_0 * 16 + ax1_1)
                                T.reads(p76_shared[v1, v0])
                                T.writes(T_transpose[v0, v1])
                                T_transpose[v0, v1] = p76_shared[v1, v0]
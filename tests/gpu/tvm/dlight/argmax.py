# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p47: T.Buffer((7, 50), "float32"), p47_red: T.Buffer((7,), "int32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        p47_red_temp_v0_shared = T.sblock_alloc_buffer((7,), "int32", scope="shared")
        p47_red_temp_v1_shared = T.sblock_alloc_buffer((7,), scope="shared")
        for ax0_fused in T.thread_binding(7, thread="blockIdx.x"):
            for ax0 in range(1):
                for ax1_fused_1 in T.thread_binding(256, thread="threadIdx.x"):
                    for ax1_fused_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("p47_red_temp"):
                            v0 = T.axis.spatial(7, ax0_fused + ax0)
                            v1 = T.axis.reduce(50, ax1_fused_0 * 256 + ax1_fused_1)
                            T.where(ax1_fused_0 * 256 + ax1_fused_1 < 50)
                            T.reads(p47[v0, v1])
                            T.writes(p47_red_temp_v0_shared[v0], p47_red_temp_v1_shared[v0])
                            with T.init():
                                p47_red_temp_v0_shared[v0] = -1
                                p47_red_temp_v1_shared[v0] = T.float32(-340282346638528859811704183484516925440.0)
                            v_p47_red_temp_v0: T.let[T.int32] = T.Select(p47_red_temp_v1_shared[v0] > p47[v0, v1] or p47_red_temp_v1_shared[v0] == p47[v0, v1] and p47_red_temp_v0_shared[v0] < v1, p47_red_temp_v0_shared[v0], v1)
                            v_p47_red_temp_v1: T.let[T.float32] = T.Select(p47_red_temp_v1_shared[v0] > p47[v0, v1], p47_red_temp_v1_shared[v0], p47[v0, v1])
                            p47_red_temp_v0_shared[v0] = v_p47_red_temp_v0
                            p47_red_temp_v1_shared[v0] = v_p47_red_temp_v1
            for ax1_1 in T.thread_binding(T.int64(256), thread="threadIdx.x"):
                for ax1_0 in T.serial(T.int64(1), annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                    with T.sblock("p47_red"):
                        v0 = T.axis.spatial(7, ax0_fused)
                        v1 = T.axis.spatial(T.int64(1), ax1_0 * T.int64(256) + ax1_1)
                        T.where(ax1_0 * T.int64(256) + ax1_1 < T.int64(1))
                        T.reads(p47_red_temp_v0_shared[v0])
                        T.writes(p47_red[v0])
                        p47_red[v0] = p47_red_temp_v0_shared[v0]
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p48: T.Buffer((7, 50), "float32"), p48_red: T.Buffer((50,), "int32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        p48_red_temp_v0_shared = T.sblock_alloc_buffer((50,), "int32", scope="shared")
        p48_red_temp_v1_shared = T.sblock_alloc_buffer((50,), scope="shared")
        for ax0_fused in T.thread_binding(50, thread="blockIdx.x"):
            for ax0 in range(1):
                for ax1_fused_1 in T.thread_binding(256, thread="threadIdx.x"):
                    for ax1_fused_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("p48_red_temp"):
                            v0 = T.axis.spatial(50, ax0_fused + ax0)
                            v1 = T.axis.reduce(7, ax1_fused_0 * 256 + ax1_fused_1)
                            T.where(ax1_fused_0 * 256 + ax1_fused_1 < 7)
                            T.reads(p48[v1, v0])
                            T.writes(p48_red_temp_v0_shared[v0], p48_red_temp_v1_shared[v0])
                            with T.init():
                                p48_red_temp_v0_shared[v0] = -1
                                p48_red_temp_v1_shared[v0] = T.float32(340282346638528859811704183484516925440.0)
                            v_p48_red_temp_v0: T.let[T.int32] = T.Select(p48_red_temp_v1_shared[v0] < p48[v1, v0] or p48_red_temp_v1_shared[v0] == p48[v1, v0] and p48_red_temp_v0_shared[v0] < v1, p48_red_temp_v0_shared[v0], v1)
                            v_p48_red_temp_v1: T.let[T.float32] = T.Select(p48_red_temp_v1_shared[v0] < p48[v1, v0], p48_red_temp_v1_shared[v0], p48[v1, v0])
                            p48_red_temp_v0_shared[v0] = v_p48_red_temp_v0
                            p48_red_temp_v1_shared[v0] = v_p48_red_temp_v1
            for ax1_1 in T.thread_binding(T.int64(256), thread="threadIdx.x"):
                for ax1_0 in T.serial(T.int64(1), annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                    with T.sblock("p48_red"):
                        v0 = T.axis.spatial(50, ax0_fused)
                        v1 = T.axis.spatial(T.int64(1), ax1_0 * T.int64(256) + ax1_1)
                        T.where(ax1_0 * T.int64(256) + ax1_1 < T.int64(1))
                        T.reads(p48_red_temp_v0_shared[v0])
                        T.writes(p48_red[v0])
                        p48_red[v0] = p48_red_temp_v0_shared[v0]
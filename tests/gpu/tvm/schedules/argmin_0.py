# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p48: T.Buffer((7, 50), "float32"), p48_red: T.Buffer((50,), "int32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        p48_red_temp_v0 = T.sblock_alloc_buffer((50,), "int32")
        p48_red_temp_v1 = T.sblock_alloc_buffer((50,))
        for ax0_fused_0 in T.thread_binding(2, thread="blockIdx.x"):
            for ax0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                with T.sblock("p48_red_temp_init"):
                    v_ax0 = T.axis.spatial(50, ax0_fused_0 * 32 + ax0_fused_1)
                    T.where(ax0_fused_0 * 32 + ax0_fused_1 < 50)
                    T.reads()
                    T.writes(p48_red_temp_v0[v_ax0], p48_red_temp_v1[v_ax0])
                    p48_red_temp_v0[v_ax0] = -1
                    p48_red_temp_v1[v_ax0] = T.float32(340282346638528859811704183484516925440.0)
                for k0 in range(7):
                    with T.sblock("p48_red_temp_update"):
                        v_ax0 = T.axis.spatial(50, ax0_fused_0 * 32 + ax0_fused_1)
                        v_k0 = T.axis.reduce(7, k0)
                        T.where(ax0_fused_0 * 32 + ax0_fused_1 < 50)
                        T.reads(p48_red_temp_v0[v_ax0], p48_red_temp_v1[v_ax0], p48[v_k0, v_ax0])
                        T.writes(p48_red_temp_v0[v_ax0], p48_red_temp_v1[v_ax0])
                        v_p48_red_temp_v0: T.let[T.int32] = T.Select(p48_red_temp_v1[v_ax0] < p48[v_k0, v_ax0] or p48_red_temp_v1[v_ax0] == p48[v_k0, v_ax0] and p48_red_temp_v0[v_ax0] < v_k0, p48_red_temp_v0[v_ax0], v_k0)
                        v_p48_red_temp_v1: T.let[T.float32] = T.Select(p48_red_temp_v1[v_ax0] < p48[v_k0, v_ax0], p48_red_temp_v1[v_ax0], p48[v_k0, v_ax0])
                        p48_red_temp_v0[v_ax0] = v_p48_red_temp_v0
                        p48_red_temp_v1[v_ax0] = v_p48_red_temp_v1
        for ax0_fused_0 in T.thread_binding(2, thread="blockIdx.x"):
            for ax0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                with T.sblock("p48_red"):
                    v_ax0 = T.axis.spatial(50, ax0_fused_0 * 32 + ax0_fused_1)
                    T.where(ax0_fused_0 * 32 + ax0_fused_1 < 50)
                    T.reads(p48_red_temp_v0[v_ax0])
                    T.writes(p48_red[v_ax0])
                    p48_red[v_ax0] = p48_red_temp_v0[v_ax0]
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p52: T.Buffer((64, 37), "float32"), p52_red: T.Buffer((37,), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        p52_red_rf_local = T.sblock_alloc_buffer((16, 37), scope="local")
        for ax0_fused_0 in T.thread_binding(37, thread="blockIdx.x"):
            for ax0_fused_1 in T.thread_binding(1, thread="threadIdx.x"):
                for ax1_fused_1 in T.thread_binding(16, thread="threadIdx.y"):
                    with T.sblock("p52_red_rf_init"):
                        vax1_fused_1 = T.axis.spatial(16, ax1_fused_1)
                        v0 = T.axis.spatial(37, ax0_fused_0 + ax0_fused_1)
                        T.reads()
                        T.writes(p52_red_rf_local[vax1_fused_1, v0])
                        p52_red_rf_local[vax1_fused_1, v0] = T.float32(0.0)
                    for ax1_fused_0, u in T.grid(4, 1):
                        with T.sblock("p52_red_rf_update"):
                            vax1_fused_1 = T.axis.spatial(16, ax1_fused_1)
                            v0 = T.axis.spatial(37, ax0_fused_0 + ax0_fused_1)
                            vax1_fused_0 = T.axis.reduce(4, ax1_fused_0)
                            T.reads(p52_red_rf_local[vax1_fused_1, v0], p52[vax1_fused_0 * 16 + vax1_fused_1, v0])
                            T.writes(p52_red_rf_local[vax1_fused_1, v0])
                            p52_red_rf_local[vax1_fused_1, v0] = p52_red_rf_local[vax1_fused_1, v0] + p52[vax1_fused_0 * 16 + vax1_fused_1, v0]
            for ax1_fused in T.thread_binding(1, thread="threadIdx.x"):
                for ax0 in T.thread_binding(16, thread="threadIdx.y"):
                    with T.sblock("p52_red"):
                        vax1_fused_1, v0 = T.axis.remap("RS", [ax0, ax0_fused_0])
                        T.reads(p52_red_rf_local[vax1_fused_1, v0])
                        T.writes(p52_red[v0])
                        with T.init():
                            p52_red[v0] = T.float32(0.0)
                        p52_red[v0] = p52_red[v0] + p52_red_rf_local[vax1_fused_1, v0]
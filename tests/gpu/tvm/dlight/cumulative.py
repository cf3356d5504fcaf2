# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p112: T.Buffer((8, 100), "float32"), compute: T.Buffer((8,), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        p112_red_local = T.sblock_alloc_buffer((8,), scope="local")
        p112_red_rf_local = T.sblock_alloc_buffer((64, 8), scope="local")
        for ax0_fused in T.thread_binding(8, thread="blockIdx.x"):
            for ax1_fused_1 in T.thread_binding(64, thread="threadIdx.x", annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                with T.sblock("p112_red_rf_init"):
                    vax1_fused_1, v0 = T.axis.remap("SS", [ax1_fused_1, ax0_fused])
                    T.reads()
                    T.writes(p112_red_rf_local[vax1_fused_1, v0])
                    p112_red_rf_local[vax1_fused_1, v0] = T.float32(0.0)
                for ax1_fused_0, u in T.grid(2, 1):
                    with T.sblock("p112_red_rf_update"):
                        vax1_fused_1, v0, vax1_fused_0 = T.axis.remap("SSR", [ax1_fused_1, ax0_fused, ax1_fused_0])
                        T.where(ax1_fused_0 * 64 + ax1_fused_1 < 100)
                        T.reads(p112_red_rf_local[vax1_fused_1, v0], p112[v0, vax1_fused_0 * 64 + vax1_fused_1])
                        T.writes(p112_red_rf_local[vax1_fused_1, v0])
                        p112_red_rf_local[vax1_fused_1, v0] = p112_red_rf_local[vax1_fused_1, v0] + p112[v0, vax1_fused_0 * 64 + vax1_fused_1]
            for ax1_fused in range(1):
                for ax0 in T.thread_binding(64, thread="threadIdx.x"):
                    with T.sblock("p112_red"):
                        vax1_fused_1, v0 = T.axis.remap("RS", [ax0, ax0_fused])
                        T.reads(p112_red_rf_local[vax1_fused_1, v0])
                        T.writes(p112_red_local[v0])
                        with T.init():
                            p112_red_local[v0] = T.float32(0.0)
                        p112_red_local[v0] = p112_red_local[v0] + p112_red_rf_local[vax1_fused_1, v0]
            for ax0 in range(1):
                with T.sblock("compute"):
                    v0 = T.axis.spatial(8, ax0_fused + ax0)
                    T.reads(p112_red_local[v0])
                    T.writes(compute[v0])
                    compute[v0] = T.max(p112_red_local[v0], T.float32(0.0))
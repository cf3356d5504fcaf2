# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p78: T.Buffer((1, 3, 7, 7), "float32"), resize: T.Buffer((1, 3, 14, 15), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        for ax0_ax1_ax2_fused_0 in T.thread_binding(1, thread="blockIdx.x"):
            for ax0_ax1_ax2_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
                with T.sblock("resize"):
                    v0 = T.axis.spatial(3, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) // 210)
                    v1 = T.axis.spatial(14, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 210 // 15)
                    v2 = T.axis.spatial(15, (ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) % 15)
                    T.where(ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1 < 630)
                    T.reads(p78[0, v0, 0:7, 0:7])
                    T.writes(resize[0, v0, v1, v2])
                    resize[0, v0, v1, v2] = (p78[0, v0, T.max(T.min(T.Cast("int32", T.floor((T.Cast("float32", v1) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5))), 6), 0), T.max(T.min(T.Cast("int32", T.floor((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5))), 6), 0)] * (T.float32(1.0) - ((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5) - T.Cast("float32", T.Cast("int32", T.floor((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5)))))) + p78[0, v0, T.max(T.min(T.Cast("int32", T.floor((T.Cast("float32", v1) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5))), 6), 0), T.max(T.min(T.Cast("int32", T.floor((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5))) + 1, 6), 0)] * ((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5) - T.Cast("float32", T.Cast("int32", T.floor((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5)))))) * (T.float32(1.0) - ((T.Cast("float32", v1) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5) - T.Cast("float32", T.Cast("int32", T.floor((T.Cast("float32", v1) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5)))))) + (p78[0, v0, T.max(T.min(T.Cast("int32", T.floor((T.Cast("float32", v1) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5))) + 1, 6), 0), T.max(T.min(T.Cast("int32", T.floor((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5))), 6), 0)] * (T.float32(1.0) - ((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5) - T.Cast("float32", T.Cast("int32", T.floor((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5)))))) + p78[0, v0, T.max(T.min(T.Cast("int32", T.floor((T.Cast("float32", v1) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5))) + 1, 6), 0), T.max(T.min(T.Cast("int32", T.floor((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5))) + 1, 6), 0)] * ((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5) - T.Cast("float32", T.Cast("int32", T.floor((T.Cast("float32", v2) + T.float32(0.5)) * T.float32(0.46666666865348816) - T.float32(0.5)))))) * ((T.Cast("float32", v1) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5) - T.Cast("float32", T.Cast("int32", T.floor((T.Cast("float32", v1) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5)))))
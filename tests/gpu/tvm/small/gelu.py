# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p90: T.Buffer((30, 31), "float32"), T_multiply: T.Buffer((30, 31), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        T_multiply_1 = T.sblock_alloc_buffer((30, 31))
        T_multiply_2 = T.sblock_alloc_buffer((30, 31))
        compute = T.sblock_alloc_buffer((30, 31))
        T_add = T.sblock_alloc_buffer((30, 31))
        for ax0, ax1 in T.grid(30, 31):
            with T.sblock("T_multiply"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(p90[v_ax0, v_ax1])
                T.writes(T_multiply_1[v_ax0, v_ax1])
                T_multiply_1[v_ax0, v_ax1] = p90[v_ax0, v_ax1] * T.float32(0.5)
        for ax0, ax1 in T.grid(30, 31):
            with T.sblock("T_multiply_1"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(p90[v_ax0, v_ax1])
                T.writes(T_multiply_2[v_ax0, v_ax1])
                T_multiply_2[v_ax0, v_ax1] = p90[v_ax0, v_ax1] * T.float32(0.70710678000000005)
        for i0, i1 in T.grid(30, 31):
            with T.sblock("compute"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T.reads(T_multiply_2[v_i0, v_i1])
                T.writes(compute[v_i0, v_i1])
                compute[v_i0, v_i1] = T.erf(T_multiply_2[v_i0, v_i1])
        for ax0, ax1 in T.grid(30, 31):
            with T.sblock("T_add"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(compute[v_ax0, v_ax1])
                T.writes(T_add[v_ax0, v_ax1])
                T_add[v_ax0, v_ax1] = compute[v_ax0, v_ax1] + T.float32(1.0)
        for ax0, ax1 in T.grid(30, 31):
            with T.sblock("T_multiply_2"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(T_multiply_1[v_ax0, v_ax1], T_add[v_ax0, v_ax1])
                T.writes(T_multiply[v_ax0, v_ax1])
                T_multiply[v_ax0, v_ax1] = T_multiply_1[v_ax0, v_ax1] * T_add[v_ax0, v_ax1]
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p99: T.Buffer((16, 64), "int8"), p100: T.Buffer((32, 64), "int8"), T_matmul_NT: T.Buffer((16, 32), "int32")):
        T.func_attr({"layout_free_buffers": [1], "tirx.noalias": True})
        # with T.sblock("root"):
        for i0, i1, k in T.grid(16, 32, 64):
            with T.sblock("T_matmul_NT"):
                v_i0, v_i1, v_k = T.axis.remap("SSR", [i0, i1, k])
                T.reads(p99[v_i0, v_k], p100[v_i1, v_k])
                T.writes(T_matmul_NT[v_i0, v_i1])
                with T.init():
                    T_matmul_NT[v_i0, v_i1] = 0
                T_matmul_NT[v_i0, v_i1] = T_matmul_NT[v_i0, v_i1] + T.Cast("int32", p99[v_i0, v_k]) * T.Cast("int32", p100[v_i1, v_k])
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p43: T.Buffer((3, 10, 24), "float32"), p44: T.Buffer((3, 14, 24), "float32"), T_batch_matmul_NT: T.Buffer((3, 10, 14), "float32")):
        T.func_attr({"layout_free_buffers": [1], "tirx.noalias": True})
        # with T.sblock("root"):
        for b, i, j, k in T.grid(3, 10, 14, 24):
            with T.sblock("T_batch_matmul_NT"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(p43[v_b, v_i, v_k], p44[v_b, v_j, v_k])
                T.writes(T_batch_matmul_NT[v_b, v_i, v_j])
                with T.init():
                    T_batch_matmul_NT[v_b, v_i, v_j] = T.float32(0.0)
                T_batch_matmul_NT[v_b, v_i, v_j] = T_batch_matmul_NT[v_b, v_i, v_j] + p43[v_b, v_i, v_k] * p44[v_b, v_j, v_k]
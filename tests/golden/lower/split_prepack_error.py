# RUN-FAIL: --stage split
# RUN-FAIL: --stage asm
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        T.func_attr({"layout_free_buffers": [1]})
        P = T.alloc_buffer((16,))
        for i in range(16):
            with T.block("P"):
                vi = T.axis.spatial(16, i)
                T.block_attr({"tilefarm.prepack": 1})
                P[vi] = B[vi] + A[vi]
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = P[vi]
# CHECK: block "P" (tilefarm.prepack) reads A beside B

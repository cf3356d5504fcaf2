# RUN-FAIL: --stage bounds
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi + 1]
# CHECK: block "B": index 0 of read of A reaches from 1 to 16, outside of 0 to 15

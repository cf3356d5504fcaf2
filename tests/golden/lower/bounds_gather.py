# RUN: --stage bounds
# An index from memory is tested before it is used.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((100,), "float32"), I: T.Buffer((16,), "int64"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[I[vi]]
# CHECK: B[vi] = T.if_then_else(0 <= I[vi] and I[vi] < 100, A[I[vi]], T.float32(0.0))

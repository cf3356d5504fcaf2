# RUN: --stage lowered --target x86-64:x86-64-v4,cores=1
# All lanes of a vector are below the end, or none: one question instead of a
# mask. Of the other condition, lanes have answers of their own.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((96,), "float32"), B: T.Buffer((96,), "float32"),
             C: T.Buffer((96,), "float32"), n: T.Buffer((1,), "int32")):
        for i in range(6):
            for j in T.vectorized(16):
                with T.block("B"):
                    vi = T.axis.spatial(96, i * 16 + j)
                    B[vi] = T.if_then_else(vi < T.Cast("int64", n[0]) * 16,
                                           A[vi], T.float32(0))
        for i in range(6):
            for j in T.vectorized(16):
                with T.block("C"):
                    vi = T.axis.spatial(96, i * 16 + j)
                    C[vi] = T.if_then_else(vi < T.Cast("int64", n[0]) * 4,
                                           A[vi], T.float32(0))
# CHECK: B[T.Ramp(
# CHECK-SAME: T.if_then_else(
# CHECK-SAME: A[T.Ramp(
# CHECK-NOT: B.vstore
# CHECK: C[T.Ramp(
# CHECK-SAME: T.Select(T.Ramp(

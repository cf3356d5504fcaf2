# RUN: --stage lowered --target x86-64:x86-64-v4,cores=1
# A condition that differs between lanes masks the load; memory outside the
# buffer is not touched.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((14,), "float32"), B: T.Buffer((16,), "float32")):
        for i in T.vectorized(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = T.if_then_else(1 <= vi and vi < 15, A[vi - 1], T.float32(0))
# CHECK: B[T.Ramp(0, 1, 16)] = T.Select(
# CHECK-SAME: A.vload([T.Ramp(-1, 1, 16)], predicate=

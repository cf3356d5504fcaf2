# RUN: --stage lowered --target x86-64:x86-64-v4,cores=1
# RUN: --stage lowered --target x86-64:x86-64-v2,cores=1 | --check-prefix=SSE
# The last vector is masked where the target has masks, else cut into powers of
# two.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((27,), "float32"), B: T.Buffer((27,), "float32")):
        for i in T.vectorized(27):
            with T.block("B"):
                vi = T.axis.spatial(27, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] + T.float32(1)
# CHECK: B[T.Ramp(0, 1, 16)] = A[T.Ramp(0, 1, 16)] + T.Broadcast(T.float32(1.0), 16)
# CHECK: T.Ramp(16, 1, 16)
# CHECK-SAME: A.vload([T.Ramp(16, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(11, 16))
# CHECK-SAME: predicate=T.Ramp(0, 1, 16) < T.Broadcast(11, 16)
# SSE: B[T.Ramp(20, 1, 4)] = A[T.Ramp(20, 1, 4)]
# SSE: B[T.Ramp(24, 1, 2)] = A[T.Ramp(24, 1, 2)]
# SSE: B[26] = A[26]

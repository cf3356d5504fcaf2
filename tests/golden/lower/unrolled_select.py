# RUN: --stage unroll
# A choice by an unrolled variable is made where the loop is unrolled, also
# where it is one for all lanes.
@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((3, 16), "float32"), B: T.Buffer((3, 16), "float32")):
        for x in T.unroll(3):
            for i in T.vectorized(16):
                with T.block("B"):
                    vx, vi = T.axis.remap("SS", [x, i])
                    B[vx, vi] = T.Select(vx == 0, A[0, vi] - A[2, vi], T.Select(vx == 1, A[1, vi] + A[2, vi], A[2, vi] - A[1, vi]))
    # CHECK-LABEL: def rows(
    # CHECK-NOT: Select
    # CHECK: B[T.Ramp(0, 1, 16)] = A[T.Ramp(0, 1, 16)] - A[T.Ramp(32, 1, 16)]
    # CHECK-NEXT: B[T.Ramp(16, 1, 16)] = A[T.Ramp(16, 1, 16)] + A[T.Ramp(32, 1, 16)]
    # CHECK-NEXT: B[T.Ramp(32, 1, 16)] = A[T.Ramp(32, 1, 16)] - A[T.Ramp(16, 1, 16)]
    # A choice between lanes stays.
    # CHECK-LABEL: def lanes(
    # CHECK: T.Select(
    @T.prim_func
    def lanes(A: T.Buffer((3, 16), "float32"), B: T.Buffer((3, 16), "float32")):
        for x in T.unroll(3):
            for i in T.vectorized(16):
                with T.block("B"):
                    vx, vi = T.axis.remap("SS", [x, i])
                    B[vx, vi] = T.Select(vi < 4, A[vx, vi], T.float32(0))

# RUN: --stage lowered
# The pragma unrolls the loops whose steps fit; a dissolved loop hands it on.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
        for o in T.serial(1, annotations={"pragma_auto_unroll_max_step": 4, "pragma_unroll_explicit": 1}):
            for i, j in T.grid(8, 4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]
# CHECK: for i in range(8)
# CHECK-NEXT: B[i * 4] = A[i * 4]
# CHECK-NEXT: B[i * 4 + 1] = A[i * 4 + 1]
# CHECK-NEXT: B[i * 4 + 2] = A[i * 4 + 2]
# CHECK-NEXT: B[i * 4 + 3] = A[i * 4 + 3]
# CHECK-NOT: for

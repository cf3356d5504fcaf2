# RUN: --stage init
# The initialisation moves before the reduction loops, where the spatial loops
# inside them are run once.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 32, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for i, k, j in T.grid(16, 32, 8):
            with T.block("B"):
                vi, vk, vj = T.axis.remap("SRS", [i, k, j])
                T.reads(A[vi, vk, vj])
                T.writes(B[vi, vj])
                with T.init():
                    B[vi, vj] = T.float32(0)
                B[vi, vj] = B[vi, vj] + A[vi, vk, vj]
# CHECK: for i in range(16)
# CHECK-NEXT: for j_init in range(8)
# CHECK-NEXT: block("B_init")
# CHECK: B[vi, vj] = T.float32(0.0)
# CHECK: for k, j in T.grid(32, 8)
# CHECK-NEXT: block("B")
# CHECK-NOT: T.init

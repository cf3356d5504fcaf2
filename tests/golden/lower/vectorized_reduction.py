# RUN: --stage lowered
# Lanes of a reduction would have to be reordered: it runs one at a time.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 64), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            for k in T.vectorized(64):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
# CHECK-NOT: Ramp
# CHECK: for k in range(64)
# CHECK-NEXT: B_acc[0] = B_acc[0] + A[i * 64 + k]

# RUN: --stage init
# A block that reduces several values starts all of them before its loops.
@T.prim_func
def main(A: T.Buffer((16, 8), "float32"), S: T.Buffer((16,), "float32"), Q: T.Buffer((16,), "float32")):
    for i, k in T.grid(16, 8):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
                Q[vi] = T.float32(1)
            x = S[vi] + A[vi, vk]
            y = Q[vi] * A[vi, vk]
            S[vi] = x
            Q[vi] = y
# CHECK: for i in range(16):
# CHECK-NEXT: with T.block("S_init"):
# CHECK: S[vi] = T.float32(0.0)
# CHECK-NEXT: Q[vi] = T.float32(1.0)
# CHECK: for k in range(8):
# CHECK-NOT: if vk == 0

# RUN: --target cuda:sm_80 --default --stage lowered
# A pooling with its padding and its ReLU: one kernel, whose threads have the
# sums in registers.
@T.prim_func
def main(A: T.Buffer((32, 64), "float32"), D: T.Buffer((32, 64), "float32")):
    P = T.alloc_buffer((34, 64), "float32")
    C = T.alloc_buffer((32, 64), "float32")
    for i, c in T.grid(34, 64):
        with T.block("P"):
            vi, vc = T.axis.remap("SS", [i, c])
            P[vi, vc] = T.if_then_else(1 <= vi and vi < 33, A[vi - 1, vc], T.float32(0))
    for i, c, r in T.grid(32, 64, 3):
        with T.block("C"):
            vi, vc, vr = T.axis.remap("SSR", [i, c, r])
            with T.init():
                C[vi, vc] = T.float32(0)
            C[vi, vc] = C[vi, vc] + P[vi + vr, vc]
    for i, c in T.grid(32, 64):
        with T.block("D"):
            vi, vc = T.axis.remap("SS", [i, c])
            D[vi, vc] = T.max(C[vi, vc], T.float32(0))
# CHECK-NOT: T.allocate
# CHECK: blockIdx.x
# CHECK-NOT: T.allocate
# CHECK: T.allocate((1,), "float32", "local") as C_local
# CHECK: D[
# CHECK-NOT: blockIdx.x

# RUN: --target cuda:sm_80 --default --stage lowered
# The reader of the sums needs those of its neighbours: a kernel of its own.
@T.prim_func
def main(A: T.Buffer((32, 64), "float32"), D: T.Buffer((29, 64), "float32")):
    C = T.alloc_buffer((30, 64), "float32")
    for i, c, r in T.grid(30, 64, 3):
        with T.block("C"):
            vi, vc, vr = T.axis.remap("SSR", [i, c, r])
            with T.init():
                C[vi, vc] = T.float32(0)
            C[vi, vc] = C[vi, vc] + A[vi + vr, vc]
    for i, c in T.grid(29, 64):
        with T.block("D"):
            vi, vc = T.axis.remap("SS", [i, c])
            D[vi, vc] = C[vi, vc] + C[vi + 1, vc]
# CHECK: "global") as C
# CHECK: blockIdx.x
# CHECK: C[
# CHECK: blockIdx.x
# CHECK: D

# RUN: --stage lowered
# The 2x48 tile lives in registers through the reduction: nothing in the loop
# touches C, and the first and last accesses are outside of it.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 96), "float32"), C: T.Buffer((64, 96), "float32")):
        for i0, j0, k in T.grid(32, 2, 64):
            for i1 in T.unroll(2):
                for j1 in T.vectorized(48):
                    with T.block("C"):
                        vi = T.axis.spatial(64, i0 * 2 + i1)
                        vj = T.axis.spatial(96, j0 * 48 + j1)
                        vk = T.axis.reduce(64, k)
                        T.reads(A[vi, vk], B[vk, vj])
                        T.writes(C[vi, vj])
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
# CHECK: for i0, j0 in T.grid(32, 2)
# CHECK: T.allocate((96,), "float32", "local") as [[ACC:C_acc]]
# CHECK: [[ACC]][T.Ramp(0, 1, 16)] = C[
# CHECK: for k in range(64)
# CHECK-NOT: C[
# CHECK-COUNT-6: [[ACC]][T.Ramp({{[0-9]+}}, 1, 16)] = [[ACC]][T.Ramp({{[0-9]+}}, 1, 16)] + T.Broadcast(A[
# CHECK-NOT: [[ACC]][T.Ramp({{[0-9]+}}, 1, 16)] =
# CHECK-COUNT-6: C[T.Ramp({{.*}}, 1, 16)] = [[ACC]][

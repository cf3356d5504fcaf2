# RUN: --stage promote --target x86-64:x86-64-v4,cores=1
# Rows of 14 are vectors of 16 that overlap in lanes that do not exist: the sums
# stay in registers. Two updates of a masked vector in a row do, too, where the
# loop around them has another row in each iteration.
@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((64, 2, 14), "float32"), C: T.Buffer((2, 14), "float32")):
        for k in range(64):
            for i in T.unroll(2):
                for j in T.vectorized(14):
                    with T.block("C"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vk, vi, vj]

    @T.prim_func
    def steps(A: T.Buffer((64, 3, 14), "float32"), C: T.Buffer((3, 14), "float32")):
        for k0, i in T.grid(32, 3):
            for k1 in T.unroll(2):
                for j in T.vectorized(14):
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        vk = T.axis.reduce(64, k0 * 2 + k1)
                        C[vi, vj] = C[vi, vj] + A[vk, vi, vj]
# CHECK: def rows
# CHECK: with T.allocate((32,), "float32", "local") as C_acc:
# CHECK: for k in range(
# CHECK-NEXT: C_acc[T.Ramp(0, 1, 16)] = C_acc[T.Ramp(0, 1, 16)] + A.vload(
# CHECK-NEXT: C_acc[T.Ramp(16, 1, 16)] = C_acc[T.Ramp(16, 1, 16)] + A.vload(
# CHECK: C.vstore([T.Ramp(0, 1, 16)], C_acc[T.Ramp(0, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16))
# CHECK-NEXT: C.vstore([T.Ramp(14, 1, 16)], C_acc[T.Ramp(16, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16))
# CHECK: def steps
# CHECK: for k0, i in T.grid(32, 3):
# CHECK-NEXT: with T.allocate((16,), "float32", "local") as C_acc:
# CHECK-NEXT: C_acc[T.Ramp(0, 1, 16)] = C.vload([T.Ramp(i * 14, 1, 16)], predicate=
# CHECK-NEXT: C_acc[T.Ramp(0, 1, 16)] = C_acc[T.Ramp(0, 1, 16)] + A.vload(
# CHECK-NEXT: C_acc[T.Ramp(0, 1, 16)] = C_acc[T.Ramp(0, 1, 16)] + A.vload(
# CHECK-NEXT: C.vstore([T.Ramp(i * 14, 1, 16)], C_acc[T.Ramp(0, 1, 16)], predicate=

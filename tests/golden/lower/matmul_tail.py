# RUN: --stage partition
# The guards leave the steady state; each edge is code of its own with exact
# extents.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((50, 64), "float32"), B: T.Buffer((64, 61), "float32"), C: T.Buffer((50, 61), "float32")):
        for i0 in T.parallel(13):
            for j0, k in T.grid(4, 64):
                for i1 in T.unroll(4):
                    for j1 in T.vectorized(16):
                        with T.block("C"):
                            vi = T.axis.spatial(50, i0 * 4 + i1)
                            vj = T.axis.spatial(61, j0 * 16 + j1)
                            vk = T.axis.reduce(64, k)
                            T.where(i0 * 4 + i1 < 50 and j0 * 16 + j1 < 61)
                            T.reads(A[vi, vk], B[vk, vj])
                            T.writes(C[vi, vj])
                            with T.init():
                                C[vi, vj] = T.float32(0)
                            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
# CHECK: for i0 in T.parallel(13)
# CHECK-NEXT: if i0 <= 11
# CHECK-NEXT: for j0 in range(3)
# CHECK: for i1 in T.unroll(4)
# CHECK-NEXT: for j1 in T.vectorized(16)
# CHECK-NEXT: C[i0 * 4 + i1, j0 * 16 + j1] = C[
# CHECK: for i1 in T.unroll(4)
# CHECK-NEXT: for j1 in T.vectorized(13)
# CHECK-NEXT: C[i0 * 4 + i1, j1 + 48] = C[
# CHECK: else
# CHECK: for i1 in T.unroll(2)
# CHECK-NEXT: for j1 in T.vectorized(16)
# CHECK-NEXT: C[i1 + 48, j0 * 16 + j1] = C[
# CHECK: for i1 in T.unroll(2)
# CHECK-NEXT: for j1 in T.vectorized(13)
# CHECK-NEXT: C[i1 + 48, j1 + 48] = C[

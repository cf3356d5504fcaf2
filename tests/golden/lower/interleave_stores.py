# RUN: --stage lowered --target x86-64:icelake-server
# Rows packed group by group: four stores of every fourth element are one store
# of interleaved rows. Not where one of them is missing.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 64), "int8"), B: T.Buffer((8, 64, 4), "int8"), C: T.Buffer((8, 64, 4), "int8")):
        for k, j in T.grid(8, 4):
            for r in T.unroll(4):
                for l in T.vectorized(16):
                    with T.block("B"):
                        vk = T.axis.spatial(32, k * 4 + r)
                        vj = T.axis.spatial(64, j * 16 + l)
                        B[vk // 4, vj, vk % 4] = A[vk, vj]
        for k, j in T.grid(8, 4):
            for r in T.unroll(3):
                for l in T.vectorized(16):
                    with T.block("C"):
                        vk = T.axis.spatial(8, k)
                        vj = T.axis.spatial(64, j * 16 + l)
                        vr = T.axis.spatial(4, r)
                        C[vk, vj, vr] = A[vk * 4 + vr, vj]
# CHECK: B[T.Ramp(k * 256 + j * 64, 1, 64)] = T.interleave(T.interleave(A[T.Ramp(k * 256 + j * 16, 1, 16)], A[T.Ramp(k * 256 + j * 16 + 128, 1, 16)]), T.interleave(A[T.Ramp(k * 256 + j * 16 + 64, 1, 16)], A[T.Ramp(k * 256 + j * 16 + 192, 1, 16)]))
# CHECK-NOT: B[
# CHECK-COUNT-3: C[T.Ramp({{.*}}, 4, 16)] = A[

# RUN: --stage lowered --target x86-64:skylake-avx512
# Partial results are combined in vectors where the loop says so.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 64), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            for k in T.serial(64, annotations={"tilefarm.reduce_lanes": 1}):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
# CHECK-NOT: for k
# CHECK: B[i] = B[i] + T.lane_sum(A[T.Ramp(i * 64, 1, 16)] + A[T.Ramp(i * 64 + 16, 1, 16)] + (A[T.Ramp(i * 64 + 32, 1, 16)] + A[T.Ramp(i * 64 + 48, 1, 16)]))

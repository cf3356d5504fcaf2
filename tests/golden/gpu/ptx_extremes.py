# RUN: --target cuda:sm_80 --stage asm
# RUN: --target cuda:sm_75 --stage asm | --check-prefix=OLD
# A maximum grows by one instruction, where there is one that keeps NaN, and
# powers of 2 are one anywhere. What is no reduction stays as written: 0 for NaN.
@T.prim_func
def main(A: T.Buffer((128, 4), "float32"), B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    for t in T.thread_binding(128, thread="threadIdx.x"):
        for k in range(4):
            with T.block("B"):
                vt, vk = T.axis.remap("SR", [t, k])
                with T.init():
                    B[vt] = T.float32(-3.4028234663852886e+38)
                B[vt] = T.max(B[vt], A[vt, vk])
        with T.block("C"):
            vt = T.axis.spatial(128, t)
            C[vt] = T.exp2(T.max(A[vt, 0], T.float32(0)))
# CHECK: max.NaN.f32
# CHECK: max.f32
# CHECK: ex2.approx.ftz.f32
# CHECK-NOT: fma
# OLD-NOT: max.NaN
# OLD: setp.gt.f32
# OLD: max.f32
# OLD: ex2.approx.ftz.f32

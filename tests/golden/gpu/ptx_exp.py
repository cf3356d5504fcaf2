# RUN: --target cuda:sm_80 --stage asm
# One instruction of a quarter of the rate of others.
@T.prim_func
def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    for t in T.thread_binding(128, thread="threadIdx.x"):
        with T.block("B"):
            vt = T.axis.spatial(128, t)
            B[vt] = T.exp(A[vt])
# CHECK: ex2.approx.ftz.f32
# CHECK-NOT: ex2.approx.ftz.f32
# CHECK-NOT: cvt.r

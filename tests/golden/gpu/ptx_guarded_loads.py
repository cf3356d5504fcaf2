# RUN: --target cuda:sm_80 --stage asm
# RUN: --target sim:sm_80 --stage llvm | --check-prefix=BRANCH
# What a thread may not load is loaded from elsewhere, and not used.
@T.prim_func
def main(A: T.Buffer((100,), "float32"), B: T.Buffer((128,), "float32")):
    for t in T.thread_binding(128, thread="threadIdx.x"):
        with T.block("B"):
            vt = T.axis.spatial(128, t)
            B[vt] = T.if_then_else(vt < 100, A[vt] * T.float32(2), T.float32(1))
# CHECK: setp
# CHECK: selp.b64
# CHECK: ld.global
# CHECK: selp.f32
# CHECK-NOT: bra
# BRANCH: br i1

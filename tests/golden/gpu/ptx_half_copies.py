# RUN: --target cuda:sm_80 --stage asm
# What is copied is not converted, with a condition, either; what is computed
# is.
@T.prim_func
def main(A: T.Buffer((100,), "bfloat16"), B: T.Buffer((128,), "bfloat16"),
         C: T.Buffer((128,), "bfloat16")):
    for t in T.thread_binding(128, thread="threadIdx.x"):
        with T.block("B"):
            vt = T.axis.spatial(128, t)
            B[vt] = T.if_then_else(vt < 100, A[vt], T.bfloat16(0))
    for t in T.thread_binding(128, thread="threadIdx.x"):
        with T.block("C"):
            vt = T.axis.spatial(128, t)
            C[vt] = B[vt] * T.bfloat16(2)
# CHECK-LABEL: .entry tilefarm_main_kernel0
# CHECK: ld.global.nc.u16
# CHECK-NOT: cvt.rn
# CHECK: st.global.u16
# CHECK-LABEL: .entry tilefarm_main_kernel1
# CHECK: cvt.rn
# CHECK: st.global

# RUN: --target cuda:sm_90a --stage asm
# Rows of 37 bytes begin anywhere: a load of 16 bytes would fail there. Rows of
# 48 begin at multiples of 16.
@I.ir_module
class Module:
    @T.prim_func
    def odd(A: T.Buffer((4, 37), "int8"), B: T.Buffer((4, 37), "int8")):
        for b in T.thread_binding(1, thread="blockIdx.x"):
            for i in T.thread_binding(4, thread="threadIdx.x"):
                for j in T.vectorized(37):
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vi, vj]
    # CHECK-LABEL: .entry odd
    # CHECK-NOT: ld.global{{.*}}v{{[24]}}
    # CHECK: ret;

    @T.prim_func
    def whole(A: T.Buffer((4, 48), "int8"), B: T.Buffer((4, 48), "int8")):
        for b in T.thread_binding(1, thread="blockIdx.x"):
            for i in T.thread_binding(4, thread="threadIdx.x"):
                for j in T.vectorized(48):
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vi, vj]
    # CHECK-LABEL: .entry whole
    # CHECK: ld.global.nc.v4.u32

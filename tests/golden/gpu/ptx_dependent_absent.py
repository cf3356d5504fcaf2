# RUN: --target cuda:sm_86 --default --stage asm
# GPUs before Hopper have no such instructions.
@T.prim_func
def main(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32")):
    for i in range(4096):
        with T.block("B"):
            vi = T.axis.spatial(4096, i)
            B[vi] = A[vi] * T.float32(2)
# CHECK-NOT: griddepcontrol
# CHECK: ld.global
# CHECK-NOT: griddepcontrol
# CHECK: st.global

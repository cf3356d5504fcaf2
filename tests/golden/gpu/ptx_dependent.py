# RUN: --target cuda:sm_90a --default --stage asm
# On Hopper a kernel waits for the one before it by itself, before it reads
# memory, and lets the next one start.
@T.prim_func
def main(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32")):
    for i in range(4096):
        with T.block("B"):
            vi = T.axis.spatial(4096, i)
            B[vi] = A[vi] * T.float32(2)
# CHECK-NOT: ld.global
# CHECK: griddepcontrol.wait;
# CHECK-NOT: ld.global
# CHECK: griddepcontrol.launch_dependents;
# CHECK: ld.global
# CHECK: st.global

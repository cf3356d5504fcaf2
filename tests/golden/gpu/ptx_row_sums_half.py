# RUN: --target cuda:sm_90a --default --stage asm
# One load brings eight numbers of 16 bits.
@T.prim_func
def main(A: T.Buffer((512, 1024), "float16"), B: T.Buffer((512,), "float16")):
    for i, k in T.grid(512, 1024):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float16(0)
            B[vi] = B[vi] + A[vi, vk]
# CHECK: ld.global.nc.v4.u32
# CHECK-NOT: ld.global.nc.u16

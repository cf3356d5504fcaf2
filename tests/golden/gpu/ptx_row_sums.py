# RUN: --target cuda:sm_90a --default --stage asm
# A thread's terms lie side by side: one load brings four, also of rows that are
# no whole number of them for each thread.
@T.prim_func
def main(A: T.Buffer((512, 1000), "float32"), B: T.Buffer((512,), "float32")):
    for i, k in T.grid(512, 1000):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
# CHECK: ld.global.nc.v4.f32
# CHECK-NOT: ld.global.nc.f32

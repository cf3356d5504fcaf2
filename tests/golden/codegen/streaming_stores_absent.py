# RUN: --stage asm --target x86-64:znver4,cores=1
# What is read again, what is not aligned whatever the caller does, and what is
# no whole vector stays in the caches.
@I.ir_module
class Module:
    @T.prim_func
    def reads(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32")):
        for i in T.serial(128, annotations={"tilefarm.streaming_stores": 1}):
            for k in T.vectorized(32):
                with T.block("B"):
                    vi = T.axis.spatial(4096, i * 32 + k)
                    B[vi] = B[vi] + A[vi]

    @T.prim_func
    def shifted(A: T.Buffer((4096,), "float32"), B: T.Buffer((4104,), "float32")):
        for i in T.serial(128, annotations={"tilefarm.streaming_stores": 1}):
            for k in T.vectorized(32):
                with T.block("B"):
                    vi = T.axis.spatial(4096, i * 32 + k)
                    B[vi + 8] = A[vi]

    @T.prim_func
    def rows(A: T.Buffer((64, 40), "float32"), B: T.Buffer((64, 40), "float32")):
        for i in T.serial(64, annotations={"tilefarm.streaming_stores": 1}):
            for k in T.vectorized(40):
                with T.block("B"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    B[vi, vk] = A[vi, vk]
# CHECK: reads:
# CHECK-NOT: vmovnt
# CHECK-NOT: sfence

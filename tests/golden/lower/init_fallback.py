# RUN: --stage init
# Where the initialisation cannot become a nest of its own before the
# reduction, it stays in the block and runs in the first iteration.
@I.ir_module
class Module:
    # A statement between sees the element early.
    @T.prim_func
    def seen(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16, 8), "float32")):
        for i, k in T.grid(16, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk])
                T.writes(B[vi])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
            with T.block("C"):
                vi, vk = T.axis.remap("SS", [i, k])
                T.reads(B[vi])
                T.writes(C[vi, vk])
                C[vi, vk] = B[vi]
    # CHECK-LABEL: def seen(
    # CHECK-NOT: init
    # CHECK: if vk == 0:
    # CHECK-NEXT: B[vi] = T.float32(0.0)
    # CHECK-NEXT: B[vi] = B[vi] + A[vi, vk]

    # The first iteration of the loop is the last of the reduction.
    @T.prim_func
    def backwards(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16,), "float32")):
        for i, k in T.grid(16, 8):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                vk = T.axis.reduce(8, 7 - k)
                T.reads(A[vi, vk])
                T.writes(B[vi])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
    # CHECK-LABEL: def backwards(
    # CHECK-NOT: init
    # CHECK: if vk == 0:
    # CHECK-NEXT: B[vi] = T.float32(0.0)

    # One loop is both: its iterations cannot be parted.
    @T.prim_func
    def fused(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16,), "float32")):
        for f in range(128):
            with T.block("B"):
                vi = T.axis.spatial(16, f // 8)
                vk = T.axis.reduce(8, f % 8)
                T.reads(A[vi, vk])
                T.writes(B[vi])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
    # CHECK-LABEL: def fused(
    # CHECK-NOT: init
    # CHECK: if vk == 0:
    # CHECK-NEXT: B[vi] = T.float32(0.0)

    # The second start depends on the first, and so on what the loop writes.
    @T.prim_func
    def dependent(A: T.Buffer((16, 8), "float32"), S: T.Buffer((16,), "float32"), Q: T.Buffer((16,), "float32")):
        for i, k in T.grid(16, 8):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk])
                T.writes(S[vi], Q[vi])
                with T.init():
                    S[vi] = T.float32(0)
                    Q[vi] = S[vi]
                S[vi] = S[vi] + A[vi, vk]
                Q[vi] = T.max(Q[vi], A[vi, vk])
    # CHECK-LABEL: def dependent(
    # CHECK: if vk == 0:
    # CHECK-NEXT: S[vi] = T.float32(0.0)
    # CHECK-NEXT: Q[vi] = S[vi]
    # CHECK-NEXT: S[vi] =

    # Nothing leaves a condition, but the loop inside of it.
    @T.prim_func
    def inside(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            if i < 9:
                for k in range(8):
                    with T.block("B"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        T.reads(A[vi, vk])
                        T.writes(B[vi])
                        with T.init():
                            B[vi] = T.float32(0)
                        B[vi] = B[vi] + A[vi, vk]
    # CHECK-LABEL: def inside(
    # CHECK: for i in range(16)
    # CHECK-NEXT: if i < 9
    # CHECK-NEXT: block("B_init")
    # CHECK: for k in range(8)
    # CHECK-NOT: vk == 0

    # No loop reduces. The condition is a constant to the next stage.
    @T.prim_func
    def once(A: T.Buffer((16, 1), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                vk = T.axis.reduce(1, 0)
                T.reads(A[vi, vk])
                T.writes(B[vi])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
    # CHECK-LABEL: def once(
    # CHECK: if vk == 0:
    # CHECK-NEXT: B[vi] = T.float32(0.0)

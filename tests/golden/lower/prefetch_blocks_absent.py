# RUN: --stage lowered --target x86-64:skylake-avx512,cores=1
# No block is read twice; the next belongs to another thread; a block and the
# next exceed the L2 cache; the operand fits the L1 cache; it is written; blocks
# overlap; rows are apart; a fetch would cost too much beside so few uses; the
# index is not known at the head of the loop, or may be below 0 there.
@I.ir_module
class Module:
    @T.prim_func
    def once(A: T.Buffer((8, 512), "float32"), B: T.Buffer((8, 512, 32), "float32"), C: T.Buffer((8, 256), "float32")):
        for n, k in T.grid(8, 512):
            for i in T.unroll(8):
                for j in T.vectorized(32):
                    with T.block("C"):
                        vi = T.axis.spatial(8, i)
                        vj = T.axis.spatial(256, n * 32 + j)
                        vk = T.axis.reduce(512, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 32, vk, vj % 32]

    @T.prim_func
    def threads(A: T.Buffer((32, 512), "float32"), B: T.Buffer((8, 512, 32), "float32"), C: T.Buffer((32, 256), "float32")):
        for n in T.parallel(8):
            for m, k in T.grid(4, 512):
                for i in T.unroll(8):
                    for j in T.vectorized(32):
                        with T.block("C"):
                            vi = T.axis.spatial(32, m * 8 + i)
                            vj = T.axis.spatial(256, n * 32 + j)
                            vk = T.axis.reduce(512, k)
                            with T.init():
                                C[vi, vj] = T.float32(0)
                            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 32, vk, vj % 32]

    @T.prim_func
    def large(A: T.Buffer((32, 16384), "float32"), B: T.Buffer((8, 16384, 32), "float32"), C: T.Buffer((32, 256), "float32")):
        for n, m, k in T.grid(8, 4, 16384):
            for i in T.unroll(8):
                for j in T.vectorized(32):
                    with T.block("C"):
                        vi = T.axis.spatial(32, m * 8 + i)
                        vj = T.axis.spatial(256, n * 32 + j)
                        vk = T.axis.reduce(16384, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 32, vk, vj % 32]

    @T.prim_func
    def small(A: T.Buffer((32, 16), "float32"), B: T.Buffer((8, 16, 32), "float32"), C: T.Buffer((32, 256), "float32")):
        for n, m, k in T.grid(8, 4, 16):
            for i in T.unroll(8):
                for j in T.vectorized(32):
                    with T.block("C"):
                        vi = T.axis.spatial(32, m * 8 + i)
                        vj = T.axis.spatial(256, n * 32 + j)
                        vk = T.axis.reduce(16, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 32, vk, vj % 32]

    @T.prim_func
    def written(A: T.Buffer((32, 512), "float32"), B: T.Buffer((8, 512, 32), "float32"), C: T.Buffer((32, 256), "float32")):
        with T.block("B"):
            B[0, 0, 0] = T.float32(1)
        for n, m, k in T.grid(8, 4, 512):
            for i in T.unroll(8):
                for j in T.vectorized(32):
                    with T.block("C"):
                        vi = T.axis.spatial(32, m * 8 + i)
                        vj = T.axis.spatial(256, n * 32 + j)
                        vk = T.axis.reduce(512, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 32, vk, vj % 32]

    @T.prim_func
    def windows(A: T.Buffer((32, 512), "float32"), B: T.Buffer((640, 32), "float32"), C: T.Buffer((32, 256), "float32")):
        for n, m, k in T.grid(8, 4, 512):
            for i in T.unroll(8):
                for j in T.vectorized(32):
                    with T.block("C"):
                        vi = T.axis.spatial(32, m * 8 + i)
                        vj = T.axis.spatial(256, n * 32 + j)
                        vk = T.axis.reduce(512, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 32 * 16 + vk, vj % 32]

    @T.prim_func
    def apart(A: T.Buffer((32, 512), "float32"), B: T.Buffer((512, 256), "float32"), C: T.Buffer((32, 256), "float32")):
        for n, m, k in T.grid(8, 4, 512):
            for i in T.unroll(8):
                for j in T.vectorized(32):
                    with T.block("C"):
                        vi = T.axis.spatial(32, m * 8 + i)
                        vj = T.axis.spatial(256, n * 32 + j)
                        vk = T.axis.reduce(512, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def few(A: T.Buffer((16, 512), "float32"), B: T.Buffer((8, 512, 32), "float32"), C: T.Buffer((16, 256), "float32")):
        for n, m, k in T.grid(8, 4, 512):
            for i in T.unroll(4):
                for j in T.vectorized(32):
                    with T.block("C"):
                        vi = T.axis.spatial(16, m * 4 + i)
                        vj = T.axis.spatial(256, n * 32 + j)
                        vk = T.axis.reduce(512, k)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 32, vk, vj % 32]

    @T.prim_func
    def late(A: T.Buffer((32, 512), "float32"), B: T.Buffer((8, 512, 32), "float32"), S: T.Buffer((8,), "uint8"), C: T.Buffer((32, 256), "float32")):
        for n, m, k in T.grid(4, 4, 512):
            with T.block("C"):
                vn, vm, vk = T.axis.remap("SSR", [n, m, k])
                p = S[0]
                for i in T.unroll(8):
                    for j in T.vectorized(32):
                        C[vm * 8 + i, vn * 32 + j] = C[vm * 8 + i, vn * 32 + j] + A[vm * 8 + i, vk] * B[vn + T.Cast("int32", T.min(p, T.uint8(3))), vk, j]

    @T.prim_func
    def before(A: T.Buffer((32, 512), "float32"), B: T.Buffer((8, 512, 32), "float32"), C: T.Buffer((32, 256), "float32")):
        for n, m, k in T.grid(8, 4, 512):
            with T.block("C"):
                vn, vm, vk = T.axis.remap("SSR", [n, m, k])
                for i in T.unroll(8):
                    for j in T.vectorized(32):
                        C[vm * 8 + i, vn * 32 + j] = C[vm * 8 + i, vn * 32 + j] + A[vm * 8 + i, vk] * T.if_then_else(vn * 5 % 8 >= 3, B[vn * 5 % 8 - 3, vk, j], T.float32(0))
# CHECK: def once
# CHECK-NOT: prefetch

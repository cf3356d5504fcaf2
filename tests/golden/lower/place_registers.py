# RUN: --stage promote
# Which small buffers may live in registers ("local"): those whose every access
# is one of the same disjoint pieces, by the thread that owns the buffer.
@I.ir_module
class Module:
    @T.prim_func
    def pieces(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
        B = T.alloc_buffer((32,))
        for i in T.unroll(2):
            for j in T.vectorized(16):
                with T.block("B"):
                    v = T.axis.spatial(32, i * 16 + j)
                    B[v] = A[v] + T.float32(1)
        for i in T.unroll(2):
            for j in T.vectorized(16):
                with T.block("C"):
                    v = T.axis.spatial(32, i * 16 + j)
                    C[v] = B[v] * B[v]
    # CHECK-LABEL: def pieces(
    # CHECK: T.allocate((32,), "float32", "local")

    # An index that is no constant needs an address.
    @T.prim_func
    def indexed(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
        B = T.alloc_buffer((32,), scope="local")
        for i in range(2):
            for j in T.vectorized(16):
                with T.block("B"):
                    v = T.axis.spatial(32, i * 16 + j)
                    B[v] = A[v] + T.float32(1)
        for i in range(2):
            for j in T.vectorized(16):
                with T.block("C"):
                    v = T.axis.spatial(32, i * 16 + j)
                    C[v] = B[v] * B[v]
    # CHECK-LABEL: def indexed(
    # CHECK: T.allocate((32,), "float32", "global")

    # Written as vectors of 16, read as vectors of 8: they overlap.
    @T.prim_func
    def overlapping(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        B = T.alloc_buffer((16,), scope="local")
        for j in T.vectorized(16):
            with T.block("B"):
                v = T.axis.spatial(16, j)
                B[v] = A[v] + T.float32(1)
        for i in T.unroll(2):
            for j in T.vectorized(8):
                with T.block("C"):
                    v = T.axis.spatial(16, i * 8 + j)
                    C[v] = B[v] * B[v]
    # CHECK-LABEL: def overlapping(
    # CHECK: T.allocate((16,), "float32", "global")

    # Every other element: no piece of memory.
    @T.prim_func
    def strided(A: T.Buffer((16,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((16,), scope="local")
        for j in T.vectorized(16):
            with T.block("B"):
                v = T.axis.spatial(16, j)
                B[v] = A[v] + T.float32(1)
        for j in T.vectorized(8):
            with T.block("C"):
                v = T.axis.spatial(8, j)
                C[v] = B[v * 2]
    # CHECK-LABEL: def strided(
    # CHECK: T.allocate((16,), "float32", "global")

    # Other threads cannot see this one's registers.
    @T.prim_func
    def shared(A: T.Buffer((16,), "float32"), C: T.Buffer((4, 16), "float32")):
        B = T.alloc_buffer((16,), scope="local")
        for j in T.vectorized(16):
            with T.block("B"):
                v = T.axis.spatial(16, j)
                B[v] = A[v] + T.float32(1)
        for i in T.parallel(4):
            for j in T.vectorized(16):
                with T.block("C"):
                    vi, v = T.axis.remap("SS", [i, j])
                    C[vi, v] = B[v] * B[v]
    # CHECK-LABEL: def shared(
    # CHECK: T.allocate((16,), "float32", "global")

    # More than twice what the registers hold (32 of 512 bits).
    @T.prim_func
    def large(A: T.Buffer((1040,), "float32"), C: T.Buffer((1040,), "float32")):
        B = T.alloc_buffer((1040,), scope="local")
        for i in T.unroll(65):
            for j in T.vectorized(16):
                with T.block("B"):
                    v = T.axis.spatial(1040, i * 16 + j)
                    B[v] = A[v] + T.float32(1)
        for i in T.unroll(65):
            for j in T.vectorized(16):
                with T.block("C"):
                    v = T.axis.spatial(1040, i * 16 + j)
                    C[v] = B[v] * B[v]
    # CHECK-LABEL: def large(
    # CHECK: T.allocate((1040,), "float32", "global")

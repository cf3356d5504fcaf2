# RUN: --stage partition
# Guards over little of what runs are asked where they stand: the loop around
# them and the work beside them is not copied.
@I.ir_module
class Module:
    @T.prim_func
    def seldom(A: T.Buffer((4, 8, 64), "float32"), C: T.Buffer((30,), "float32")):
        sums = T.alloc_buffer((4, 8), "float32")
        for t in range(4):
            for i, k in T.grid(8, 64):
                with T.block("sums"):
                    vt, vi, vk = T.axis.remap("SSR", [t, i, k])
                    sums[vt, vi] = sums[vt, vi] + A[vt, vi, vk]
            for i in T.unroll(8):
                with T.block("C"):
                    v = T.axis.spatial(30, t * 8 + i)
                    T.where(t * 8 + i < 30)
                    C[v] = sums[v // 8, v % 8]
    # CHECK-LABEL: def seldom(
    # CHECK: for t in range(4)
    # CHECK-COUNT-1: A[
    # CHECK-NOT: A[
    # CHECK: for i in T.unroll(8)
    # CHECK-NEXT: if t * 8 + i < 30
    # CHECK-NEXT: C[t * 8 + i] =
    # CHECK-NOT: for
    # The same guard over all of it: the last tile is code of its own.
    # CHECK-LABEL: def often(
    # CHECK: for t in range(3)
    # CHECK-NEXT: for i in T.unroll(8)
    # CHECK-NEXT: C[
    # CHECK: for i in T.unroll(6)
    # CHECK-NEXT: C[
    @T.prim_func
    def often(A: T.Buffer((30,), "float32"), C: T.Buffer((30,), "float32")):
        for t in range(4):
            for i in T.unroll(8):
                with T.block("C"):
                    v = T.axis.spatial(30, t * 8 + i)
                    T.where(t * 8 + i < 30)
                    C[v] = A[v] + T.float32(1)

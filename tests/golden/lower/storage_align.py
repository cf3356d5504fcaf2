# RUN: --stage flat
# The padding that an annotation asks for: rows of 36 elements, which lie 4
# past a multiple of 32. A parameter keeps the layout of its caller.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
        B = T.alloc_buffer((32, 32))
        for i, j in T.grid(32, 32):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                T.block_attr({"buffer_dim_align": [[0, 0, 32, 4]]})
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(32, 32):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vj, vi])
                T.writes(C[vi, vj])
                T.block_attr({"buffer_dim_align": [[0, 0, 32, 4]]})
                C[vi, vj] = B[vj, vi] * T.float32(2)
# CHECK: A: T.Buffer((1024,), "float32"), C: T.Buffer((1024,), "float32")
# CHECK: T.allocate((1152,)
# CHECK: B[i * 36 + j] = A[i * 32 + j] + T.float32(1.0)
# CHECK: C[i * 32 + j] = B[j * 36 + i] * T.float32(2.0)

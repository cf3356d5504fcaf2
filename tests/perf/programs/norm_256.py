# Sums of squares of 256 x 256 matrices: partial results of two loops.
from tvm.script import tir as T


@T.prim_func
def norm(A: T.Buffer((8, 256, 256), "float32"), D: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    for b, i, j in T.grid(8, 256, 256):
        with T.block("C"):
            vb, vi, vj = T.axis.remap("SRR", [b, i, j])
            with T.init():
                C[vb] = T.float32(0)
            C[vb] = C[vb] + A[vb, vi, vj] * A[vb, vi, vj]
    for b in range(8):
        with T.block("D"):
            vb = T.axis.spatial(8, b)
            D[vb] = T.sqrt(C[vb])

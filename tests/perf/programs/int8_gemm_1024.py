# Sums of products of bytes, 1024 x 1024 x 1024: dot products, or tiles of a
# matrix unit.
from tvm.script import tir as T


@T.prim_func
def int8_gemm(
    A: T.Buffer((1024, 1024), "uint8"),
    B: T.Buffer((1024, 1024), "int8"),
    C: T.Buffer((1024, 1024), "int32"),
):
    for i, j, k in T.grid(1024, 1024, 1024):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vk, vj], "int32")

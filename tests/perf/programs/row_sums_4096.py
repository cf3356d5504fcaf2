# The sums of 4,096 rows: partial results (rfactor).
from tvm.script import tir as T


@T.prim_func
def row_sums(A: T.Buffer((4096, 4096), "float32"), C: T.Buffer((4096,), "float32")):
    for i, k in T.grid(4096, 4096):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]

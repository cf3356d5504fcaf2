# A quantised dense layer: bytes times signed bytes, summed in 32 bits. W is
# constant, so that a schedule may lay it out for dot-product instructions ahead
# of time (VNNI and AMX on x86-64, dotprod and i8mm on AArch64).
from tvm.script import tir as T


@T.prim_func
def dense_int8(X: T.Buffer((64, 256), "uint8"), W: T.Buffer((256, 256), "int8"),
               Y: T.Buffer((64, 256), "int32")):
    T.func_attr({"layout_free_buffers": [1]})
    for i, j, k in T.grid(64, 256, 256):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = 0
            Y[vi, vj] = Y[vi, vj] + T.cast(X[vi, vk], "int32") * T.cast(
                W[vk, vj], "int32")

# Sums of bytes' products in lanes.
@T.prim_func
def main(A: T.Buffer((16, 64), "uint8"), B: T.Buffer((64,), "int8"), C: T.Buffer((16,), "int32")):
    for i in range(16):
        for k in T.serial(64, annotations={"tilefarm.reduce_lanes": 1}):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.int32(0)
                C[vi] = C[vi] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk])

# The float functions, 16-bit floats, integers and gathers.
@T.prim_func
def mixed(A: T.Buffer((4, 256), "float16"), I: T.Buffer((256,), "int32"), U: T.Buffer((256,), "uint8"), C: T.Buffer((4, 256), "float32"), D: T.Buffer((256,), "int32")):
    for i in T.parallel(4):
        for jo in range(16):
            for j in T.vectorized(16):
                with T.block("C"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.spatial(256, jo * 16 + j)
                    C[vi, vj] = T.tanh(T.Cast("float32", A[vi, vj])) + T.erf(T.Cast("float32", A[vi, vj])) * T.sqrt(T.float32(2))
    for jo in range(16):
        for j in T.vectorized(16):
            with T.block("D"):
                vj = T.axis.spatial(256, jo * 16 + j)
                D[vj] = T.if_then_else(0 <= I[vj] and I[vj] < 256, T.Cast("int32", U[I[vj]]), -1) // 3

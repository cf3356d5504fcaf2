from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def mm_relu(A: T.Buffer((37, 65), "float32"), B: T.Buffer((65, 50), "float32"), C: T.Buffer((37, 50), "float32")):
        Y = T.alloc_buffer((37, 50), "float32")
        for i, j, k in T.grid(37, 50, 65):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(37, 50):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    # Sums of rows, by way of a buffer that is too large for the stack.
    @T.prim_func
    def row_sums(A: T.Buffer((512, 512), "float32"), S: T.Buffer((512,), "float32")):
        D = T.alloc_buffer((512, 512), "float32")
        for j, i in T.grid(512, 512):
            with T.block("D"):
                vj, vi = T.axis.remap("SS", [j, i])
                D[vj, vi] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(512, 512):
            with T.block("S"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + D[vj, vi]

    @T.prim_func
    def functions(X: T.Buffer((100,), "float32"), Y: T.Buffer((14, 100), "float32")):
        for i in range(100):
            with T.block("Y"):
                v = T.axis.spatial(100, i)
                Y[0, v] = T.exp(X[v])
                Y[1, v] = T.tanh(X[v])
                Y[2, v] = T.erf(X[v])
                Y[3, v] = T.log(T.abs(X[v]) + T.float32(1))
                Y[4, v] = T.sin(X[v])
                Y[5, v] = T.tan(X[v])
                Y[6, v] = T.pow(T.abs(X[v]) + T.float32(0.5), T.float32(1.5))
                Y[7, v] = T.sqrt(T.abs(X[v]))
                Y[8, v] = T.floor(X[v])
                Y[9, v] = T.nearbyint(X[v])
                Y[10, v] = T.atan(X[v])
                Y[11, v] = T.sinh(X[v])
                Y[12, v] = T.round(X[v])
                Y[13, v] = T.sigmoid(X[v])

    @T.prim_func
    def doubles(X: T.Buffer((100,), "float64"), Y: T.Buffer((5, 100), "float64")):
        for i in range(100):
            with T.block("Y"):
                v = T.axis.spatial(100, i)
                Y[0, v] = T.exp(X[v])
                Y[1, v] = T.erf(X[v])
                Y[2, v] = T.atan2(X[v], T.float64(2))
                Y[3, v] = T.log1p(T.abs(X[v]))
                Y[4, v] = T.cosh(X[v])

    # Every dtype of a JavaScript array; float16 is a Uint16Array of its bits.
    @T.prim_func
    def dtypes(I8: T.Buffer((9,), "int8"), U8: T.Buffer((9,), "uint8"), I16: T.Buffer((9,), "int16"), U16: T.Buffer((9,), "uint16"), I32: T.Buffer((9,), "int32"), U32: T.Buffer((9,), "uint32"), I64: T.Buffer((9,), "int64"), U64: T.Buffer((9,), "uint64"), F16: T.Buffer((9,), "float16"), BF16: T.Buffer((9,), "bfloat16"), F64: T.Buffer((9,), "float64"), B: T.Buffer((9,), "bool")):
        for i in range(9):
            with T.block("all"):
                v = T.axis.spatial(9, i)
                I8[v] = I8[v] - T.int8(1)
                U8[v] = U8[v] + T.uint8(250)
                I16[v] = I16[v] * T.int16(3)
                U16[v] = U16[v] + T.uint16(65000)
                I32[v] = I32[v] * T.int32(-7)
                U32[v] = U32[v] + T.uint32(4000000000)
                I64[v] = I64[v] * T.int64(1000000007)
                U64[v] = U64[v] * T.uint64(3)
                F16[v] = F16[v] + T.float16(1)
                BF16[v] = BF16[v] * T.bfloat16(2)
                F64[v] = F64[v] / T.float64(3)
                B[v] = T.Not(B[v])

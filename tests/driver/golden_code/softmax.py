# Softmax a row at a time.
# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def softmax(A: T.Buffer((64, 250), "float32"), C: T.Buffer((64, 250), "float32")):
        # with T.block("root"):
        M = T.alloc_buffer((64,), "float32")
        E = T.alloc_buffer((64, 250), "float32")
        S = T.alloc_buffer((64,), "float32")
        for i in T.parallel(64):
            for ax0 in range(250):
                with T.block("M"):
                    vi, vk = T.axis.remap("SR", [i, ax0])
                    T.reads(A[vi, vk])
                    T.writes(M[vi])
                    with T.init():
                        M[vi] = T.float32(-1e+30)
                    M[vi] = T.max(M[vi], A[vi, vk])
            for ax0_0 in range(16):
                for ax0_1 in T.vectorized(16):
                    with T.block("E"):
                        vi = T.axis.spatial(64, i)
                        vj = T.axis.spatial(250, ax0_0 * 16 + ax0_1)
                        T.where(ax0_0 * 16 + ax0_1 < 250)
                        T.reads(A[vi, vj], M[vi])
                        T.writes(E[vi, vj])
                        E[vi, vj] = T.exp(A[vi, vj] - M[vi])
            for ax0 in range(250):
                with T.block("S"):
                    vi, vk = T.axis.remap("SR", [i, ax0])
                    T.reads(E[vi, vk])
                    T.writes(S[vi])
                    with T.init():
                        S[vi] = T.float32(0.0)
                    S[vi] = S[vi] + E[vi, vk]
            for j_0 in range(16):
                for j_1 in T.vectorized(16):
                    with T.block("C"):
                        vi = T.axis.spatial(64, i)
                        vj = T.axis.spatial(250, j_0 * 16 + j_1)
                        T.where(j_0 * 16 + j_1 < 250)
                        T.reads(E[vi, vj], S[vi])
                        T.writes(C[vi, vj])
                        C[vi, vj] = E[vi, vj] / S[vi]

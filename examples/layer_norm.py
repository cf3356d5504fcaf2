# Layer normalisation: each row of X less its mean, over its standard deviation,
# scaled and shifted by G and B.
from tvm.script import tir as T


@T.prim_func
def layer_norm(X: T.Buffer((128, 768), "float32"),
               G: T.Buffer((768,), "float32"), B: T.Buffer((768,), "float32"),
               Y: T.Buffer((128, 768), "float32")):
    S = T.alloc_buffer((128,), "float32")
    Q = T.alloc_buffer((128,), "float32")
    for i, k in T.grid(128, 768):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + X[vi, vk]
    for i, k in T.grid(128, 768):
        with T.block("Q"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Q[vi] = T.float32(0)
            Q[vi] = Q[vi] + (X[vi, vk] - S[vi] / T.float32(768)) * (
                X[vi, vk] - S[vi] / T.float32(768))
    for i, j in T.grid(128, 768):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = (X[vi, vj] - S[vi] / T.float32(768)) / T.sqrt(
                Q[vi] / T.float32(768) + T.float32(1e-05)) * G[vj] + B[vj]

# Four functions of a transformer's block, on 128 tokens of 256 numbers: each is
# tuned by itself, and the trials go where the block gains most.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Block:
    @T.prim_func
    def project(X: T.Buffer((128, 256), "float32"), W: T.Buffer((256, 768), "float32"),
                Y: T.Buffer((128, 768), "float32")):
        for i, j, k in T.grid(128, 768, 256):
            with T.block("Y"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[v_i, v_j] = T.float32(0)
                Y[v_i, v_j] = Y[v_i, v_j] + X[v_i, v_k] * W[v_k, v_j]

    @T.prim_func
    def scores(Q: T.Buffer((4, 128, 64), "float32"), K: T.Buffer((4, 128, 64), "float32"),
               S: T.Buffer((4, 128, 128), "float32")):
        for h, i, j, k in T.grid(4, 128, 128, 64):
            with T.block("S"):
                v_h, v_i, v_j, v_k = T.axis.remap("SSSR", [h, i, j, k])
                with T.init():
                    S[v_h, v_i, v_j] = T.float32(0)
                S[v_h, v_i, v_j] = S[v_h, v_i, v_j] + Q[v_h, v_i, v_k] * K[v_h, v_j, v_k]

    @T.prim_func
    def norm(X: T.Buffer((128, 256), "float32"), Y: T.Buffer((128, 256), "float32")):
        mean = T.alloc_buffer((128,), "float32")
        square = T.alloc_buffer((128,), "float32")
        for i, k in T.grid(128, 256):
            with T.block("mean"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                with T.init():
                    mean[v_i] = T.float32(0)
                mean[v_i] = mean[v_i] + X[v_i, v_k] * T.float32(0.00390625)
        for i, k in T.grid(128, 256):
            with T.block("square"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                with T.init():
                    square[v_i] = T.float32(0)
                square[v_i] = square[v_i] + X[v_i, v_k] * X[v_i, v_k] * T.float32(0.00390625)
        for i, j in T.grid(128, 256):
            with T.block("Y"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                Y[v_i, v_j] = (X[v_i, v_j] - mean[v_i]) / T.sqrt(
                    square[v_i] - mean[v_i] * mean[v_i] + T.float32(0.00001))

    @T.prim_func
    def gelu(X: T.Buffer((128, 1024), "float32"), Y: T.Buffer((128, 1024), "float32")):
        for i, j in T.grid(128, 1024):
            with T.block("Y"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                Y[v_i, v_j] = X[v_i, v_j] * T.float32(0.5) * (
                    T.float32(1) + T.erf(X[v_i, v_j] * T.float32(0.70710678)))

# A depthwise 3x3 convolution with padding, its channels last: each channel has a
# filter of its own, so that every weight is used for a whole image.
from tvm.script import tir as T


@T.prim_func
def depthwise(X: T.Buffer((1, 56, 56, 64), "float32"),
              W: T.Buffer((3, 3, 64), "float32"),
              Y: T.Buffer((1, 56, 56, 64), "float32")):
    P = T.alloc_buffer((1, 58, 58, 64), "float32")
    for n, h, w, c in T.grid(1, 58, 58, 64):
        with T.block("P"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            P[vn, vh, vw, vc] = T.if_then_else(
                1 <= vh and vh < 57 and 1 <= vw and vw < 57,
                X[vn, vh - 1, vw - 1, vc], T.float32(0))
    for n, h, w, c, r, s in T.grid(1, 56, 56, 64, 3, 3):
        with T.block("Y"):
            vn, vh, vw, vc, vr, vs = T.axis.remap("SSSSRR", [n, h, w, c, r, s])
            with T.init():
                Y[vn, vh, vw, vc] = T.float32(0)
            Y[vn, vh, vw, vc] = Y[vn, vh, vw, vc] + P[
                vn, vh + vr, vw + vs, vc] * W[vr, vs, vc]

# relu(conv2d + bias): 3x3, 64 -> 64 channels at 56 x 56, NHWC, padding 1.
from tvm.script import tir as T


@T.prim_func
def conv2d(
    data: T.Buffer((1, 56, 56, 64), "float32"),
    weight: T.Buffer((3, 3, 64, 64), "float32"),
    bias: T.Buffer((64,), "float32"),
    out: T.Buffer((1, 56, 56, 64), "float32"),
):
    padded = T.alloc_buffer((1, 58, 58, 64), "float32")
    acc = T.alloc_buffer((1, 56, 56, 64), "float32")
    biased = T.alloc_buffer((1, 56, 56, 64), "float32")
    for n, h, w, c in T.grid(1, 58, 58, 64):
        with T.block("padded"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            padded[vn, vh, vw, vc] = T.if_then_else(
                1 <= vh and vh < 57 and 1 <= vw and vw < 57,
                data[vn, vh - 1, vw - 1, vc],
                T.float32(0),
            )
    for n, h, w, co, rh, rw, rc in T.grid(1, 56, 56, 64, 3, 3, 64):
        with T.block("conv"):
            vn, vh, vw, vco, vrh, vrw, vrc = T.axis.remap(
                "SSSSRRR", [n, h, w, co, rh, rw, rc]
            )
            with T.init():
                acc[vn, vh, vw, vco] = T.float32(0)
            acc[vn, vh, vw, vco] = (
                acc[vn, vh, vw, vco]
                + padded[vn, vh + vrh, vw + vrw, vrc]
                * weight[vrh, vrw, vrc, vco]
            )
    for n, h, w, c in T.grid(1, 56, 56, 64):
        with T.block("bias"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            biased[vn, vh, vw, vc] = acc[vn, vh, vw, vc] + bias[vc]
    for n, h, w, c in T.grid(1, 56, 56, 64):
        with T.block("relu"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            out[vn, vh, vw, vc] = T.max(biased[vn, vh, vw, vc], T.float32(0))

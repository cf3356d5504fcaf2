# A convolution with its padding computed where it is used.
# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def conv2d(data: T.Buffer((1, 56, 56, 64), "float32"), weight: T.Buffer((3, 3, 64, 64), "float32"), out: T.Buffer((1, 56, 56, 64), "float32")):
        # with T.block("root"):
        padded = T.alloc_buffer((1, 58, 58, 64), "float32")
        for n_h_fused in T.parallel(56):
            for ax0, ax1, ax2 in T.grid(3, 58, 64):
                with T.block("padded"):
                    vn = T.axis.spatial(1, 0)
                    vh = T.axis.spatial(58, n_h_fused + ax0)
                    vw, vc = T.axis.remap("SS", [ax1, ax2])
                    T.reads(data[vn, vh - 1, vw - 1, vc])
                    T.writes(padded[vn, vh, vw, vc])
                    padded[vn, vh, vw, vc] = T.if_then_else(1 <= vh and vh < 57 and 1 <= vw and vw < 57, data[vn, vh - 1, vw - 1, vc], T.float32(0.0))
            for w_0, co_0 in T.grid(8, 2):
                for w_1_init in T.unroll(7):
                    for co_1_init in T.vectorized(32):
                        with T.block("conv_init"):
                            vn = T.axis.spatial(1, 0)
                            vh = T.axis.spatial(56, n_h_fused)
                            vw = T.axis.spatial(56, w_0 * 7 + w_1_init)
                            vco = T.axis.spatial(64, co_0 * 32 + co_1_init)
                            T.reads()
                            T.writes(out[vn, vh, vw, vco])
                            out[vn, vh, vw, vco] = T.float32(0.0)
                for rh, rw, rc in T.grid(3, 3, 64):
                    for w_1 in T.unroll(7):
                        for co_1 in T.vectorized(32):
                            with T.block("conv_update"):
                                vn = T.axis.spatial(1, 0)
                                vh = T.axis.spatial(56, n_h_fused)
                                vw = T.axis.spatial(56, w_0 * 7 + w_1)
                                vco = T.axis.spatial(64, co_0 * 32 + co_1)
                                vrh, vrw, vrc = T.axis.remap("RRR", [rh, rw, rc])
                                T.reads(out[vn, vh, vw, vco], padded[vn, vh + vrh, vw + vrw, vrc], weight[vrh, vrw, vrc, vco])
                                T.writes(out[vn, vh, vw, vco])
                                out[vn, vh, vw, vco] = out[vn, vh, vw, vco] + padded[vn, vh + vrh, vw + vrw, vrc] * weight[vrh, vrw, vrc, vco]

# Winograd's algorithm with tiles of 4 on 6 x 6 outputs: unrolled transforms.
# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def conv(data: T.Buffer((1, 8, 8, 16), "float32"), weight: T.Buffer((3, 3, 16, 16), "float32"), out: T.Buffer((1, 6, 6, 16), "float32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        out_kernel = T.alloc_buffer((6, 6, 16, 16), "float32")
        out_tile = T.alloc_buffer((6, 6, 1, 2, 2, 16), "float32")
        out_tile_rows = T.alloc_buffer((6, 6, 1, 2, 2, 16), "float32")
        out_input = T.alloc_buffer((6, 6, 1, 2, 2, 16), "float32")
        out_product = T.alloc_buffer((6, 6, 1, 2, 2, 16), "float32")
        out_product_rows = T.alloc_buffer((4, 6, 1, 2, 2, 16), "float32")
        for x, y, ci, co in T.grid(6, 6, 16, 16):
            with T.block("conv_kernel"):
                vx, vy, vci, vco = T.axis.remap("SSSS", [x, y, ci, co])
                T.reads(weight[0:3, 0:3, vci, vco])
                T.writes(out_kernel[vx, vy, vci, vco])
                out_kernel[vx, vy, vci, vco] = T.Select(vy == 0, T.float32(1.1377778), T.Select(vy == 1, T.float32(-0.68840337), T.Select(vy == 2, T.float32(-0.68840337), T.Select(vy == 3, T.float32(0.11951447), T.Select(vy == 4, T.float32(0.11951447), T.float32(0.0)))))) * (T.Select(vx == 0, T.float32(1.1377778), T.Select(vx == 1, T.float32(-0.68840337), T.Select(vx == 2, T.float32(-0.68840337), T.Select(vx == 3, T.float32(0.11951447), T.Select(vx == 4, T.float32(0.11951447), T.float32(0.0)))))) * weight[0, 0, vci, vco] + T.Select(vx == 0, T.float32(0.0), T.Select(vx == 1, T.float32(-0.4302521), T.Select(vx == 2, T.float32(0.4302521), T.Select(vx == 3, T.float32(0.17927171), T.Select(vx == 4, T.float32(-0.17927171), T.float32(0.0)))))) * weight[1, 0, vci, vco] + T.Select(vx == 0, T.float32(0.0), T.Select(vx == 1, T.float32(-0.26890758), T.Select(vx == 2, T.float32(-0.26890758), T.Select(vx == 3, T.float32(0.26890758), T.Select(vx == 4, T.float32(0.26890758), T.float32(1.0)))))) * weight[2, 0, vci, vco]) + T.Select(vy == 0, T.float32(0.0), T.Select(vy == 1, T.float32(-0.4302521), T.Select(vy == 2, T.float32(0.4302521), T.Select(vy == 3, T.float32(0.17927171), T.Select(vy == 4, T.float32(-0.17927171), T.float32(0.0)))))) * (T.Select(vx == 0, T.float32(1.1377778), T.Select(vx == 1, T.float32(-0.68840337), T.Select(vx == 2, T.float32(-0.68840337), T.Select(vx == 3, T.float32(0.11951447), T.Select(vx == 4, T.float32(0.11951447), T.float32(0.0)))))) * weight[0, 1, vci, vco] + T.Select(vx == 0, T.float32(0.0), T.Select(vx == 1, T.float32(-0.4302521), T.Select(vx == 2, T.float32(0.4302521), T.Select(vx == 3, T.float32(0.17927171), T.Select(vx == 4, T.float32(-0.17927171), T.float32(0.0)))))) * weight[1, 1, vci, vco] + T.Select(vx == 0, T.float32(0.0), T.Select(vx == 1, T.float32(-0.26890758), T.Select(vx == 2, T.float32(-0.26890758), T.Select(vx == 3, T.float32(0.26890758), T.Select(vx == 4, T.float32(0.26890758), T.float32(1.0)))))) * weight[2, 1, vci, vco]) + T.Select(vy == 0, T.float32(0.0), T.Select(vy == 1, T.float32(-0.26890758), T.Select(vy == 2, T.float32(-0.26890758), T.Select(vy == 3, T.float32(0.26890758), T.Select(vy == 4, T.float32(0.26890758), T.float32(1.0)))))) * (T.Select(vx == 0, T.float32(1.1377778), T.Select(vx == 1, T.float32(-0.68840337), T.Select(vx == 2, T.float32(-0.68840337), T.Select(vx == 3, T.float32(0.11951447), T.Select(vx == 4, T.float32(0.11951447), T.float32(0.0)))))) * weight[0, 2, vci, vco] + T.Select(vx == 0, T.float32(0.0), T.Select(vx == 1, T.float32(-0.4302521), T.Select(vx == 2, T.float32(0.4302521), T.Select(vx == 3, T.float32(0.17927171), T.Select(vx == 4, T.float32(-0.17927171), T.float32(0.0)))))) * weight[1, 2, vci, vco] + T.Select(vx == 0, T.float32(0.0), T.Select(vx == 1, T.float32(-0.26890758), T.Select(vx == 2, T.float32(-0.26890758), T.Select(vx == 3, T.float32(0.26890758), T.Select(vx == 4, T.float32(0.26890758), T.float32(1.0)))))) * weight[2, 2, vci, vco])
        for x, y, n, th, tw, ci in T.grid(6, 6, 1, 2, 2, 16):
            with T.block("conv_tile"):
                vx, vy, vn, vth, vtw, vci = T.axis.remap("SSSSSS", [x, y, n, th, tw, ci])
                T.reads(data[0, vth * 4 + vx, vtw * 4 + vy, vci])
                T.writes(out_tile[vx, vy, vn, vth, vtw, vci])
                out_tile[vx, vy, vn, vth, vtw, vci] = T.if_then_else(vth * 4 + vx < 8 and vtw * 4 + vy < 8, data[0, vth * 4 + vx, vtw * 4 + vy, vci], T.float32(0.0))
        for th, tw, n in T.grid(2, 2, 1):
            for x in T.unroll(6):
                for y in T.unroll(6):
                    for ci in T.vectorized(16):
                        with T.block("conv_tile_rows"):
                            vx, vy, vn, vth, vtw, vci = T.axis.remap("SSSSSS", [x, y, n, th, tw, ci])
                            T.reads(out_tile[0:6, vy, 0, vth, vtw, vci])
                            T.writes(out_tile_rows[vx, vy, vn, vth, vtw, vci])
                            out_tile_rows[vx, vy, vn, vth, vtw, vci] = T.Select(vx == 0, out_tile[4, vy, 0, vth, vtw, vci] - T.float32(2.640625) * out_tile[2, vy, 0, vth, vtw, vci] + T.float32(0.87890625) * out_tile[0, vy, 0, vth, vtw, vci], T.Select(vx == 1, out_tile[4, vy, 0, vth, vtw, vci] - T.float32(2.25) * out_tile[2, vy, 0, vth, vtw, vci] + T.float32(0.625) * (out_tile[3, vy, 0, vth, vtw, vci] - T.float32(2.25) * out_tile[1, vy, 0, vth, vtw, vci]), T.Select(vx == 2, out_tile[4, vy, 0, vth, vtw, vci] - T.float32(2.25) * out_tile[2, vy, 0, vth, vtw, vci] - T.float32(0.625) * (out_tile[3, vy, 0, vth, vtw, vci] - T.float32(2.25) * out_tile[1, vy, 0, vth, vtw, vci]), T.Select(vx == 3, out_tile[4, vy, 0, vth, vtw, vci] - T.float32(0.390625) * out_tile[2, vy, 0, vth, vtw, vci] + T.float32(1.5) * (out_tile[3, vy, 0, vth, vtw, vci] - T.float32(0.390625) * out_tile[1, vy, 0, vth, vtw, vci]), T.Select(vx == 4, out_tile[4, vy, 0, vth, vtw, vci] - T.float32(0.390625) * out_tile[2, vy, 0, vth, vtw, vci] - T.float32(1.5) * (out_tile[3, vy, 0, vth, vtw, vci] - T.float32(0.390625) * out_tile[1, vy, 0, vth, vtw, vci]), out_tile[5, vy, 0, vth, vtw, vci] - T.float32(2.640625) * out_tile[3, vy, 0, vth, vtw, vci] + T.float32(0.87890625) * out_tile[1, vy, 0, vth, vtw, vci])))))
        for th, tw, n in T.grid(2, 2, 1):
            for x in T.unroll(6):
                for y in T.unroll(6):
                    for ci in T.vectorized(16):
                        with T.block("conv_input"):
                            vx, vy, vn, vth, vtw, vci = T.axis.remap("SSSSSS", [x, y, n, th, tw, ci])
                            T.reads(out_tile_rows[vx, 0:6, 0, vth, vtw, vci])
                            T.writes(out_input[vx, vy, vn, vth, vtw, vci])
                            out_input[vx, vy, vn, vth, vtw, vci] = T.Select(vy == 0, out_tile_rows[vx, 4, 0, vth, vtw, vci] - T.float32(2.640625) * out_tile_rows[vx, 2, 0, vth, vtw, vci] + T.float32(0.87890625) * out_tile_rows[vx, 0, 0, vth, vtw, vci], T.Select(vy == 1, out_tile_rows[vx, 4, 0, vth, vtw, vci] - T.float32(2.25) * out_tile_rows[vx, 2, 0, vth, vtw, vci] + T.float32(0.625) * (out_tile_rows[vx, 3, 0, vth, vtw, vci] - T.float32(2.25) * out_tile_rows[vx, 1, 0, vth, vtw, vci]), T.Select(vy == 2, out_tile_rows[vx, 4, 0, vth, vtw, vci] - T.float32(2.25) * out_tile_rows[vx, 2, 0, vth, vtw, vci] - T.float32(0.625) * (out_tile_rows[vx, 3, 0, vth, vtw, vci] - T.float32(2.25) * out_tile_rows[vx, 1, 0, vth, vtw, vci]), T.Select(vy == 3, out_tile_rows[vx, 4, 0, vth, vtw, vci] - T.float32(0.390625) * out_tile_rows[vx, 2, 0, vth, vtw, vci] + T.float32(1.5) * (out_tile_rows[vx, 3, 0, vth, vtw, vci] - T.float32(0.390625) * out_tile_rows[vx, 1, 0, vth, vtw, vci]), T.Select(vy == 4, out_tile_rows[vx, 4, 0, vth, vtw, vci] - T.float32(0.390625) * out_tile_rows[vx, 2, 0, vth, vtw, vci] - T.float32(1.5) * (out_tile_rows[vx, 3, 0, vth, vtw, vci] - T.float32(0.390625) * out_tile_rows[vx, 1, 0, vth, vtw, vci]), out_tile_rows[vx, 5, 0, vth, vtw, vci] - T.float32(2.640625) * out_tile_rows[vx, 3, 0, vth, vtw, vci] + T.float32(0.87890625) * out_tile_rows[vx, 1, 0, vth, vtw, vci])))))
        for x, y, n, th, tw, co, ci in T.grid(6, 6, 1, 2, 2, 16, 16):
            with T.block("conv_product"):
                vx, vy, vn, vth, vtw, vco, vci = T.axis.remap("SSSSSSR", [x, y, n, th, tw, co, ci])
                T.reads(out_input[vx, vy, 0, vth, vtw, vci], out_kernel[vx, vy, vci, vco])
                T.writes(out_product[vx, vy, vn, vth, vtw, vco])
                with T.init():
                    out_product[vx, vy, vn, vth, vtw, vco] = T.float32(0.0)
                out_product[vx, vy, vn, vth, vtw, vco] = out_product[vx, vy, vn, vth, vtw, vco] + out_input[vx, vy, 0, vth, vtw, vci] * out_kernel[vx, vy, vci, vco]
        for x, y, n, th, tw, co in T.grid(4, 6, 1, 2, 2, 16):
            with T.block("conv_product_rows"):
                vx, vy, vn, vth, vtw, vco = T.axis.remap("SSSSSS", [x, y, n, th, tw, co])
                T.reads(out_product[0:6, vy, 0, vth, vtw, vco])
                T.writes(out_product_rows[vx, vy, vn, vth, vtw, vco])
                out_product_rows[vx, vy, vn, vth, vtw, vco] = T.Select(vx == 0, out_product[0, vy, 0, vth, vtw, vco] + (out_product[1, vy, 0, vth, vtw, vco] + out_product[2, vy, 0, vth, vtw, vco]) + (out_product[3, vy, 0, vth, vtw, vco] + out_product[4, vy, 0, vth, vtw, vco]), T.Select(vx == 1, T.float32(0.625) * (out_product[1, vy, 0, vth, vtw, vco] - out_product[2, vy, 0, vth, vtw, vco]) + T.float32(1.5) * (out_product[3, vy, 0, vth, vtw, vco] - out_product[4, vy, 0, vth, vtw, vco]), T.Select(vx == 2, T.float32(0.390625) * (out_product[1, vy, 0, vth, vtw, vco] + out_product[2, vy, 0, vth, vtw, vco]) + T.float32(2.25) * (out_product[3, vy, 0, vth, vtw, vco] + out_product[4, vy, 0, vth, vtw, vco]), T.float32(0.24414062) * (out_product[1, vy, 0, vth, vtw, vco] - out_product[2, vy, 0, vth, vtw, vco]) + T.float32(3.375) * (out_product[3, vy, 0, vth, vtw, vco] - out_product[4, vy, 0, vth, vtw, vco]) + out_product[5, vy, 0, vth, vtw, vco])))
        for n, h_0, w_0 in T.grid(1, 2, 2):
            for h_1 in T.unroll(4):
                for w_1 in T.unroll(4):
                    for co in T.vectorized(16):
                        with T.block("conv"):
                            vn = T.axis.spatial(1, n)
                            vh = T.axis.spatial(6, h_0 * 4 + h_1)
                            vw = T.axis.spatial(6, w_0 * 4 + w_1)
                            vco = T.axis.spatial(16, co)
                            T.where(h_0 * 4 + h_1 < 6 and w_0 * 4 + w_1 < 6)
                            T.reads(out_product_rows[vh % 4, 0:6, vn, vh // 4, vw // 4, vco])
                            T.writes(out[vn, vh, vw, vco])
                            out[vn, vh, vw, vco] = T.Select(vw % 4 == 0, out_product_rows[vh % 4, 0, vn, vh // 4, vw // 4, vco] + (out_product_rows[vh % 4, 1, vn, vh // 4, vw // 4, vco] + out_product_rows[vh % 4, 2, vn, vh // 4, vw // 4, vco]) + (out_product_rows[vh % 4, 3, vn, vh // 4, vw // 4, vco] + out_product_rows[vh % 4, 4, vn, vh // 4, vw // 4, vco]), T.Select(vw % 4 == 1, T.float32(0.625) * (out_product_rows[vh % 4, 1, vn, vh // 4, vw // 4, vco] - out_product_rows[vh % 4, 2, vn, vh // 4, vw // 4, vco]) + T.float32(1.5) * (out_product_rows[vh % 4, 3, vn, vh // 4, vw // 4, vco] - out_product_rows[vh % 4, 4, vn, vh // 4, vw // 4, vco]), T.Select(vw % 4 == 2, T.float32(0.390625) * (out_product_rows[vh % 4, 1, vn, vh // 4, vw // 4, vco] + out_product_rows[vh % 4, 2, vn, vh // 4, vw // 4, vco]) + T.float32(2.25) * (out_product_rows[vh % 4, 3, vn, vh // 4, vw // 4, vco] + out_product_rows[vh % 4, 4, vn, vh // 4, vw // 4, vco]), T.float32(0.24414062) * (out_product_rows[vh % 4, 1, vn, vh // 4, vw // 4, vco] - out_product_rows[vh % 4, 2, vn, vh // 4, vw // 4, vco]) + T.float32(3.375) * (out_product_rows[vh % 4, 3, vn, vh // 4, vw // 4, vco] - out_product_rows[vh % 4, 4, vn, vh // 4, vw // 4, vco]) + out_product_rows[vh % 4, 5, vn, vh // 4, vw // 4, vco])))

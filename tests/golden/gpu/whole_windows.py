# RUN: --target cuda:sm_80 --default --stage trace
# A fetch is whole windows of 3 x 3, of four channels: each of its elements is
# at the same place of the window in all fetches.
@T.prim_func
def main(X: T.Buffer((16, 32, 30, 30), "float32"), W: T.Buffer((64, 32, 3, 3), "float32"),
         Y: T.Buffer((16, 64, 28, 28), "float32")):
    for n, f, y, x, c, u, v in T.grid(16, 64, 28, 28, 32, 3, 3):
        with T.block("Y"):
            vn, vf, vy, vx, vc, vu, vv = T.axis.remap("SSSSRRR", [n, f, y, x, c, u, v])
            with T.init():
                Y[vn, vf, vy, vx] = T.float32(0)
            Y[vn, vf, vy, vx] = (Y[vn, vf, vy, vx] +
                                 X[vn, vc, vy + vu, vx + vv] * W[vf, vc, vu, vv])
# CHECK: sample_tile({{.*}}, n=3, max_innermost_factor=64, decision=[8, 36, 1])

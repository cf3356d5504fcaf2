# RUN: --stage lowered --target cuda:sm_90a
# RUN: --stage asm --target cuda:sm_90a | --check-prefix=ASM
# The copy engine fetches windows of a convolution: of 2 x 3 elements, every second
# one along the width. 72 windows are no whole number of tiles; beyond the last
# one there is another image, which does not exist.
@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((1, 8, 16, 64), "float16"), W: T.Buffer((64, 2, 3, 64), "float16"), B: T.Buffer((64,), "float32"), Y: T.Buffer((1, 9, 8, 64), "float16")):
        S_local = T.alloc_buffer((72, 64), "float32", scope="local")
        X_shared = T.alloc_buffer((72, 384), "float16", scope="shared")
        W_shared = T.alloc_buffer((64, 384), "float16", scope="shared")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for h in T.thread_binding(2, thread="vthread.y"):
                for c in T.thread_binding(8, thread="vthread.x"):
                    for t in T.thread_binding(128, thread="threadIdx.x"):
                        for q in T.unroll(2):
                            with T.block("init"):
                                v0 = T.axis.spatial(72, b * 64 + t // 32 * 16 + h * 8 + t % 32 // 4)
                                v1 = T.axis.spatial(64, c * 8 + t % 4 * 2 + q)
                                T.where(b * 64 + t // 32 * 16 + h * 8 + t % 32 // 4 < 72)
                                S_local[v0, v1] = T.float32(0)
                        for k in T.serial(6, annotations={"tilefarm.box_stores": 1, "tilefarm.warpgroup_stages": 2}):
                            for r, e in T.grid(64, 64):
                                with T.block("X_shared"):
                                    v0 = T.axis.spatial(72, b * 64 + r)
                                    v1 = T.axis.spatial(384, k * 64 + e)
                                    T.where(b * 64 + r < 72)
                                    X_shared[v0, v1] = T.if_then_else(1 <= v0 // 8 + v1 // 192 and v0 // 8 + v1 // 192 < 9 and 1 <= v0 % 8 * 2 + v1 % 192 // 64 and v0 % 8 * 2 + v1 % 192 // 64 < 17, X[0, v0 // 8 + v1 // 192 - 1, v0 % 8 * 2 + v1 % 192 // 64 - 1, v1 % 64], T.float16(0))
                            for r, e in T.grid(64, 64):
                                with T.block("W_shared"):
                                    v0 = T.axis.spatial(64, r)
                                    v1 = T.axis.spatial(384, k * 64 + e)
                                    W_shared[v0, v1] = W[v0, v1 // 192, v1 % 192 // 64, v1 % 64]
                            for e, q in T.grid(64, 2):
                                with T.block("update"):
                                    v0 = T.axis.spatial(72, b * 64 + t // 32 * 16 + h * 8 + t % 32 // 4)
                                    v1 = T.axis.spatial(64, c * 8 + t % 4 * 2 + q)
                                    v2 = T.axis.reduce(384, k * 64 + e)
                                    T.where(b * 64 + t // 32 * 16 + h * 8 + t % 32 // 4 < 72)
                                    S_local[v0, v1] = S_local[v0, v1] + T.Cast("float32", X_shared[v0, v2]) * T.Cast("float32", W_shared[v1, v2])
                        for q in T.vectorized(2):
                            with T.block("Y"):
                                v0 = T.axis.spatial(72, b * 64 + t // 32 * 16 + h * 8 + t % 32 // 4)
                                v1 = T.axis.spatial(64, c * 8 + t % 4 * 2 + q)
                                T.where(b * 64 + t // 32 * 16 + h * 8 + t % 32 // 4 < 72)
                                Y[0, v0 // 8, v0 % 8, v1] = T.Cast("float16", T.max(S_local[v0, v1] + B[v1], T.float32(0)))
# CHECK: T.barrier_expect(barriers[{{.*}}], 16384)
# CHECK-NEXT: T.copy_windows(X[0], X_shared[{{.*}}], barriers[{{.*}}], 0, 0, blockIdx_x * 8 - 1, -1, 0, 1, 1, 8, 16, 64, 64, 1, 1, 1, 64, 2, 0, k // 3, k % 3, 0, -1, -1, 0, 0, -2, 1, 1, 2)
# CHECK-NEXT: T.copy_box(W[0], W_shared[{{.*}}], barriers[{{.*}}], 0, 0, k // 3, k % 3, 0, 1, 64, 2, 3, 64, 1, 64, 1, 1, 64)
# CHECK: if blockIdx_x * 64 + {{.*}} < 72:
# CHECK-NEXT: Y_tiles[{{.*}}B[
# CHECK-NOT: if_then_else
# CHECK: T.store_box(Y[0], Y_tiles[{{.*}}], 0, 0, 0, 0, blockIdx_x * 64, 0, 1, 1, 1, 72, 64, 1, 1, 1, 64, 64)
# ASM: cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r{{[0-9]+}}], [%rd{{[0-9]+}}, {%r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}}], [%r{{[0-9]+}}], {%rs{{[0-9]+}}, %rs{{[0-9]+}}};
# ASM: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16

# RUN-FAIL: --stage pipeline --target cuda:sm_90a
# Outside of a tensor the copy engine has zeros alone.
@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((1, 64, 64), "float16"), W: T.Buffer((8, 128), "float16"), Y: T.Buffer((64, 8), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        S = T.alloc_buffer((64, 8), scope="local")
        X_shared = T.alloc_buffer((64, 128), "float16", scope="shared")
        W_shared = T.alloc_buffer((8, 128), "float16", scope="shared")
        for h in T.thread_binding(2, thread="vthread.y"):
            for t in T.thread_binding(128, thread="threadIdx.x"):
                for k in T.serial(2, annotations={"tilefarm.warpgroup_stages": 2}):
                    for r, e in T.grid(64, 64):
                        with T.block("X_shared"):
                            v0 = T.axis.spatial(64, r)
                            v1 = T.axis.spatial(128, k * 64 + e)
                            X_shared[v0, v1] = T.if_then_else(1 <= v0 + v1 // 64, X[0, v0 + v1 // 64 - 1, v1 % 64], T.float16(1))
                    for r, e in T.grid(8, 64):
                        with T.block("W_shared"):
                            v0 = T.axis.spatial(8, r)
                            v1 = T.axis.spatial(128, k * 64 + e)
                            W_shared[v0, v1] = W[v0, v1]
                    for e, q in T.grid(64, 2):
                        with T.block("S"):
                            v0 = T.axis.spatial(64, t // 32 * 16 + h * 8 + t % 32 // 4)
                            v1 = T.axis.spatial(8, t % 4 * 2 + q)
                            v2 = T.axis.reduce(128, k * 64 + e)
                            with T.init():
                                S[v0, v1] = T.float32(0)
                            S[v0, v1] = S[v0, v1] + T.Cast("float32", X_shared[v0, v2]) * T.Cast("float32", W_shared[v1, v2])
                for q in range(2):
                    with T.block("Y"):
                        v0 = T.axis.spatial(64, t // 32 * 16 + h * 8 + t % 32 // 4)
                        v1 = T.axis.spatial(8, t % 4 * 2 + q)
                        Y[v0, v1] = S[v0, v1]
# CHECK: loop k: warpgroup products: the copy to X_shared: its value is no element of a tensor in global memory, or 0 outside

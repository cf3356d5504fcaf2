# RUN-FAIL: --stage lowered --target x86-64:znver4
# A nest that is no longer the product's own is not given to a library.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 48), "float32"), C: T.Buffer((64, 48), "float32")):
        for i_0, j, k, i_1 in T.grid(8, 48, 32, 8):
            with T.block("C"):
                vi = T.axis.spatial(64, i_0 * 8 + i_1)
                vj = T.axis.spatial(48, j)
                vk = T.axis.reduce(32, k)
                T.block_attr({"tilefarm.library": "openblas.sgemm"})
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
# CHECK: block "C" (tilefarm.library): variable vi has no whole loop of its own

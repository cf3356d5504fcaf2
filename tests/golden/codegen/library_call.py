# RUN: --stage asm --target x86-64:znver4,cores=4
# The runtime calls the library's function and sets its threads around it.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 48), "float32"), C: T.Buffer((64, 48), "float32")):
        for i, j, k in T.grid(64, 48, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.block_attr({"tilefarm.library": "onednn.sgemm"})
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
# CHECK: tf_rt_onednn_sgemm
# CHECK-NOT: openblas

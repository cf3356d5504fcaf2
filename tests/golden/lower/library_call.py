# RUN: --stage lowered --target x86-64:znver4
# A product that a library is to compute is one call; its epilogue stays.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 32), "float32"), B: T.Buffer((48, 32), "float32"), D: T.Buffer((64, 48), "float32")):
        C = T.alloc_buffer((64, 48))
        for i, j, k in T.grid(64, 48, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.block_attr({"tilefarm.library": "openblas.sgemm"})
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
        for i, j in T.grid(64, 48):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = T.max(C[vi, vj], T.float32(0))
# CHECK: T.evaluate(T.library_gemm({{[0-9]+}}, A[0], B[0], C[0], 64, 48, 32, 32, 32, 48, 0, 1, 1, 0, 0, 0))
# CHECK: T.max(C[
# CHECK-NOT: A[

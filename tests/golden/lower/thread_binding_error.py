# RUN-FAIL: --stage legalize
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi]
# CHECK: loop i is bound to threadIdx.x; bind is for GPU targets

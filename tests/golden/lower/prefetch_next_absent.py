# RUN: --stage lowered
# Nothing to fetch: A's rows are shorter than two lines, B is read across its
# rows, C stays, and a loop that asks for nothing gets nothing.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 24), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64,), "float32"), D: T.Buffer((64,), "float32")):
        for i in T.serial(64, annotations={"tilefarm.prefetch_next": 1}):
            for k in range(24):
                with T.block("C"):
                    vi = T.axis.spatial(64, i)
                    vk = T.axis.reduce(24, k)
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk] + B[vk, vi]
        for i in T.serial(64, annotations={"tilefarm.prefetch_next": 0}):
            for k in range(64):
                with T.block("D"):
                    vi = T.axis.spatial(64, i)
                    vk = T.axis.reduce(64, k)
                    with T.init():
                        D[vi] = T.float32(0)
                    D[vi] = D[vi] + B[vi, vk]
# CHECK: def main
# CHECK-NOT: prefetch_lines

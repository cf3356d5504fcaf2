# RUN: --stage flat
# 16-bit floats compute in float32 and round where they are stored.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((40,), "float16"), B: T.Buffer((40,), "float16"), C: T.Buffer((40,), "float16")):
        for i in range(40):
            with T.block("C"):
                vi = T.axis.spatial(40, i)
                C[vi] = A[vi] * B[vi] + T.exp(A[vi])
# CHECK: C[i] = T.{{[Cc]ast}}({{.*}}float16
# CHECK-SAME: {{.*}}float32{{.*}}A[i]{{.*}} * {{.*}}float32{{.*}}B[i]

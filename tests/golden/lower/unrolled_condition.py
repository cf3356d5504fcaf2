# RUN: --stage unroll
# A condition that is the same for all copies is tested once; one that reads
# what the copies write is not.
@T.prim_func
def main(A: T.Buffer((64, 4), "float32"), B: T.Buffer((64, 4), "float32"), C: T.Buffer((4,), "int32")):
    for i in range(64):
        for k in T.unroll(4):
            if i % 3 == 1:
                B[i, k] = A[i, k]
    for k in T.unroll(4):
        if C[0] < 2:
            C[k] = 3
# CHECK: i % 3 == 1
# CHECK-NOT: if
# CHECK: if C[0] < T.int32(2)
# CHECK: if C[0] < T.int32(2)

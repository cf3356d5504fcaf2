# RUN: --target cuda:sm_90a --default --stage lowered
# Outputs that fill the GPU have a thread each, and few terms are not shared.
@T.prim_func
def main(A: T.Buffer((64, 262144), "float32"), B: T.Buffer((262144,), "float32"),
         C: T.Buffer((16, 2048), "float32"), D: T.Buffer((2048,), "float32")):
    for j, k in T.grid(262144, 64):
        with T.block("B"):
            vj, vk = T.axis.remap("SR", [j, k])
            with T.init():
                B[vj] = T.float32(0)
            B[vj] = B[vj] + A[vk, vj]
    for j, k in T.grid(2048, 16):
        with T.block("D"):
            vj, vk = T.axis.remap("SR", [j, k])
            with T.init():
                D[vj] = T.float32(0)
            D[vj] = D[vj] + C[vk, vj]
# CHECK-NOT: threadIdx.y
# CHECK: B[
# CHECK-NOT: threadIdx.y
# CHECK: D[
# CHECK-NOT: threadIdx.y

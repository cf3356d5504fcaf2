# RUN: --target cuda:sm_90a --default --stage lowered
# Few columns have few blocks of threads: long sums are cut into parts for more
# blocks, which a second kernel adds. The sum of 16-bit floats has two a lane.
@T.prim_func
def main(A: T.Buffer((1000000, 16), "float16"), B: T.Buffer((16,), "float32")):
    for j, k in T.grid(16, 1000000):
        with T.block("B"):
            vj, vk = T.axis.remap("SR", [j, k])
            with T.init():
                B[vj] = T.float32(0)
            B[vj] = B[vj] + T.Cast("float32", A[vk, vj])
# CHECK: T.thread_binding(256, thread="blockIdx.x"
# CHECK: thread="threadIdx.y"
# CHECK: A[
# CHECK-SAME: T.Ramp(
# CHECK: thread="blockIdx.x"
# CHECK: B[
# CHECK-NOT: thread="blockIdx.x"

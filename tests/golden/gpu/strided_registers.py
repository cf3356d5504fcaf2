# RUN: --target cuda:sm_80 --stage plain
# Each thread reads two of the three elements that it fetched, apart by 2: they
# are its own, in each iteration of k.
@T.prim_func
def main(A: T.Buffer((1024,), "float32"), B: T.Buffer((256,), "float32")):
    L = T.alloc_buffer((1024,), "float32", scope="local")
    for v in T.thread_binding(2, thread="vthread.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            for k in range(3):
                for a in T.unroll(3):
                    with T.block("L"):
                        v0 = T.axis.spatial(1024, v * 256 + t * 4 + k + a)
                        L[v0] = A[v0]
                for j in T.unroll(2):
                    with T.block("B"):
                        vi = T.axis.spatial(256, v * 128 + t * 2 + j)
                        vk = T.axis.reduce(3, k)
                        with T.init():
                            B[vi] = T.float32(0)
                        B[vi] = B[vi] + L[vi * 2 + vk]
# CHECK: for t in T.thread_binding(64, thread="threadIdx.x"):
# CHECK: for k in range(3):
# CHECK-NEXT: T.allocate({{.*}}, "float32", "local") as L

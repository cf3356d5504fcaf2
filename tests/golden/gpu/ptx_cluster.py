# RUN: --target cuda:sm_90a --default --stage asm
# The parts of a product's sums are those of a cluster's blocks, which add them up
# in one kernel: two at once, read from the memory of each block.
@T.prim_func
def main(A: T.Buffer((128, 3072), "float32"), W: T.Buffer((3072, 768), "float32"), B: T.Buffer((768,), "float32"),
         D: T.Buffer((128, 768), "float32")):
    C = T.alloc_buffer((128, 768), "float32")
    for i, j, k in T.grid(128, 768, 3072):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vk, vj]
    for i, j in T.grid(128, 768):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj] + B[vj], T.float32(0))
# CHECK: .visible .entry
# CHECK: .explicitcluster
# CHECK: .reqnctapercluster
# CHECK: %clusterid.x
# CHECK: %cluster_ctarank
# CHECK: barrier.cluster.arrive
# CHECK: barrier.cluster.wait
# CHECK: mapa.u64
# CHECK: ld.v2.f32
# CHECK: barrier.cluster.arrive
# CHECK: barrier.cluster.wait
# CHECK-NOT: .visible .entry

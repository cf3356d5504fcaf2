// Kernels whose blocks read the memory of others in their cluster.
#include "tests/property/given_kernels.h"

namespace tilefarm::property {
namespace {

// Three of four blocks, and some of their threads, add up vectors of all parts.
constexpr char kSumsOfParts[] = R"(
@T.prim_func
def main(A: T.Buffer((3, 4, 6, 16), "float32"), B: T.Buffer((3, 6, 16), "float32")):
    P = T.alloc_buffer((4, 3, 6, 16), scope="shared.cluster")
    S = T.alloc_buffer((3, 6, 16), scope="local")
    for b in T.thread_binding(3, thread="blockIdx.x"):
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(96, thread="threadIdx.x"):
                with T.block("P"):
                    vp = T.axis.spatial(4, p)
                    vb = T.axis.spatial(3, b)
                    vi = T.axis.spatial(6, t // 16)
                    vj = T.axis.spatial(16, t % 16)
                    P[vp, vb, vi, vj] = A[vb, vp, vi, vj] * T.float32(2)
        for q in T.thread_binding(3, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(8, thread="threadIdx.x"):
                for j in T.vectorized(4):
                    with T.block("S_init"):
                        vb = T.axis.spatial(3, b)
                        vi = T.axis.spatial(6, q * 2 + t // 4)
                        vj = T.axis.spatial(16, t % 4 * 4 + j)
                        S[vb, vi, vj] = T.float32(0)
                for p in range(4):
                    for j in T.vectorized(4):
                        with T.block("S"):
                            vb = T.axis.spatial(3, b)
                            vi = T.axis.spatial(6, q * 2 + t // 4)
                            vj = T.axis.spatial(16, t % 4 * 4 + j)
                            vp = T.axis.reduce(4, p)
                            S[vb, vi, vj] = S[vb, vi, vj] + P[vp, vb, vi, vj]
                for j in T.vectorized(4):
                    with T.block("B"):
                        vb = T.axis.spatial(3, b)
                        vi = T.axis.spatial(6, q * 2 + t // 4)
                        vj = T.axis.spatial(16, t % 4 * 4 + j)
                        B[vb, vi, vj] = S[vb, vi, vj] + T.float32(1)
)";

// A part is overwritten in each round, when the next block has read it.
constexpr char kRounds[] = R"(
@T.prim_func
def main(A: T.Buffer((5, 8, 32), "float32"), B: T.Buffer((5, 8, 32), "float32")):
    P = T.alloc_buffer((8, 32), scope="shared.cluster")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for r in range(5):
            for p in T.thread_binding(8, thread="clusterCtaIdx.x"):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("P"):
                        vr, vp, vt = T.axis.remap("OSS", [r, p, t])
                        P[vp, vt] = A[vr, vp, vt]
            for p in T.thread_binding(8, thread="clusterCtaIdx.x"):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("B"):
                        vr, vp, vt = T.axis.remap("SSS", [r, p, t])
                        B[vr, vp, vt] = P[(vp + 1) % 8, 31 - vt] - A[vr, vp, vt]
)";

// Threads first read what others of their block have written, then what other
// blocks have: the barrier in between is of the block alone.
constexpr char kBlocksThenClusters[] = R"(
@T.prim_func
def main(A: T.Buffer((2, 4, 64), "float16"), B: T.Buffer((2, 4, 64), "float16"), C: T.Buffer((2, 4, 64), "float16")):
    P = T.alloc_buffer((4, 2, 64), "float16", scope="shared.cluster")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("P"):
                    vb, vp, vt = T.axis.remap("SSS", [b, p, t])
                    P[vp, vb, vt] = A[vb, vp, vt]
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("B"):
                    vb, vp, vt = T.axis.remap("SSS", [b, p, t])
                    B[vb, vp, vt] = P[vp, vb, 63 - vt]
        for p in T.thread_binding(4, thread="clusterCtaIdx.x"):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("C"):
                    vb, vp, vt = T.axis.remap("SSS", [b, p, t])
                    C[vb, vp, vt] = P[3 - vp, vb, vt] + P[vp, vb, vt]
)";

}  // namespace

std::vector<GivenKernel> GivenClusterKernels() {
  return {
      {"SumsOfParts", kSumsOfParts, false, /*clusters=*/true},
      {"Rounds", kRounds, false, /*clusters=*/true},
      {"BlocksThenClusters", kBlocksThenClusters, false, /*clusters=*/true},
  };
}

}  // namespace tilefarm::property

// A small program and a trace for it, for tests with real processes.
#ifndef TILEFARM_TESTS_WORKER_PROGRAMS_H_
#define TILEFARM_TESTS_WORKER_PROGRAMS_H_

namespace tilefarm::worker {

inline constexpr char kMatmulRelu[] = R"(from tvm.script import ir as I
from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"),
             D: T.Buffer((64, 64), "float32")):
        C = T.alloc_buffer((64, 64))
        for i, j, k in T.grid(64, 64, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(64, 64):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = T.max(C[vi, vj], T.float32(0))
)";

inline constexpr char kMatmulReluTrace[] = R"(b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l1, factors=[None, 8])
sch.reorder(l4, l5, l3, l2)
sch.vectorize(l2)
)";

}  // namespace tilefarm::worker

#endif  // TILEFARM_TESTS_WORKER_PROGRAMS_H_

# RUN: --stage split
# RUN: --stage split | --check-prefix=PACKED
# What packs a layout-free parameter becomes a function of its own, and the
# packed buffer takes the parameter's place.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((16, 20), "float32"), C: T.Buffer((8, 20), "float32")):
        T.func_attr({"layout_free_buffers": [1], "tir.noalias": True})
        P = T.alloc_buffer((3, 16, 8))
        for k, j in T.grid(16, 20):
            with T.block("P"):
                vk, vj = T.axis.remap("SS", [k, j])
                T.block_attr({"tilefarm.prepack": 1})
                P[vj // 8, vk, vj % 8] = B[vk, vj]
        for i, j, k in T.grid(8, 20, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * P[vj // 8, vk, vj % 8]
# CHECK: def main_pack_1(B: T.Buffer((16, 20), "float32"), P: T.Buffer((3, 16, 8), "float32")):
# CHECK-NOT: def
# CHECK: P[vj // 8, vk, vj % 8] = B[vk, vj]
# CHECK: def main_packed(A: T.Buffer((8, 16), "float32"), P: T.Buffer((3, 16, 8), "float32"), C: T.Buffer((8, 20), "float32")):
# PACKED: def main_packed
# PACKED-NOT: alloc_buffer
# PACKED-NOT: layout_free_buffers
# PACKED-NOT: tilefarm.prepack
# PACKED: C[vi, vj] + A[vi, vk] * P[vj // 8, vk, vj % 8]

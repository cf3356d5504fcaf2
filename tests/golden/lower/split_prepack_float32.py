# RUN: --stage split
# RUN: --stage asm --target x86-64:icelake-server | --check-prefix=ASM
# Constants of 16 bits that are read as float32 may be float32 ahead of time:
# what multiplies them converts nothing.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 16), "float32"), B: T.Buffer((64, 16), "float16"), C: T.Buffer((16,), "float32")):
        T.func_attr({"layout_free_buffers": [1], "tir.noalias": True})
        P = T.alloc_buffer((64, 16), "float16")
        for k in range(64):
            for j in T.vectorized(16):
                with T.block("P"):
                    vk, vj = T.axis.remap("SS", [k, j])
                    T.block_attr({"tilefarm.prepack": 1, "tilefarm.prepack_float32": 1})
                    P[vk, vj] = B[vk, vj]
        for k in range(64):
            for j in T.vectorized(16):
                with T.block("C"):
                    vk, vj = T.axis.remap("RS", [k, j])
                    with T.init():
                        C[vj] = T.float32(0)
                    C[vj] = C[vj] + A[vk, vj] * T.cast(P[vk, vj], "float32")
# CHECK: def main_pack_1(B: T.Buffer((64, 16), "float16"), P: T.Buffer((64, 16), "float32")):
# CHECK: P[vk, vj] = T.Cast("float32", B[vk, vj])
# CHECK: def main_packed(A: T.Buffer((64, 16), "float32"), P: T.Buffer((64, 16), "float32"), C: T.Buffer((16,), "float32")):
# CHECK: C[vj] + A[vk, vj] * P[vk, vj]
# ASM: main_packed:
# ASM-NOT: vcvtph2ps
# ASM: vfmadd231ps (
# ASM-NOT: vcvtph2ps
# ASM: ret

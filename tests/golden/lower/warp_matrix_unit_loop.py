# RUN-FAIL: --stage matrices --target cuda:sm_80
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32, 16), "float16"), B: T.Buffer((16, 8), "float16"), C: T.Buffer((32, 8), "float32")):
        A_shared = T.alloc_buffer((32, 16), "float16", scope="shared")
        B_shared = T.alloc_buffer((16, 8), "float16", scope="shared")
        C_local = T.alloc_buffer((32, 8), "float32", scope="local")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for u in T.thread_binding(2, thread="vthread.y"):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    for x in T.vectorized(8):
                        with T.block("A_shared"):
                            vi = T.axis.spatial(32, b * 16 + t // 2)
                            vk = T.axis.spatial(16, t % 2 * 8 + x)
                            T.reads(A[vi, vk])
                            T.writes(A_shared[vi, vk])
                            T.block_attr({"buffer_dim_align": [[0, 0, 16, 8]]})
                            A_shared[vi, vk] = A[vi, vk]
                    for x in range(4):
                        with T.block("B_shared"):
                            vk = T.axis.spatial(16, t // 2)
                            vj = T.axis.spatial(8, t % 2 * 4 + x)
                            T.reads(B[vk, vj])
                            T.writes(B_shared[vk, vj])
                            B_shared[vk, vj] = B[vk, vj]
                    for k in T.serial(1, annotations={"tilefarm.warp_matrix": "mma"}):
                        for j in range(2):
                            with T.block("C"):
                                vi = T.axis.spatial(32, b * 16 + u * 8 + t // 4)
                                vj = T.axis.spatial(8, t % 4 * 2 + j)
                                vk = T.axis.reduce(16, k)
                                T.reads(A_shared[vi, vk], B_shared[vk, vj])
                                T.writes(C_local[vi, vj])
                                with T.init():
                                    C_local[vi, vj] = T.float32(0)
                                C_local[vi, vj] = C_local[vi, vj] + T.Cast("float32", A_shared[vi, vk]) * T.Cast("float32", B_shared[vk, vj])
                    for j in T.vectorized(2):
                        with T.block("C_local"):
                            vi = T.axis.spatial(32, b * 16 + u * 8 + t // 4)
                            vj = T.axis.spatial(8, t % 4 * 2 + j)
                            T.reads(C_local[vi, vj])
                            T.writes(C[vi, vj])
                            C[vi, vj] = C_local[vi, vj]
# CHECK: loop k: tilefarm.warp_matrix: it has one iteration, not the terms of an instruction

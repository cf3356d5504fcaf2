# RUN-FAIL: --stage matrices --target cuda:sm_80 --function lanes | --check-prefix=LANES
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function kind | --check-prefix=KIND
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function types | --check-prefix=TYPES
# RUN-FAIL: --stage matrices --target cuda:sm_70 --function model | --check-prefix=MODEL
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function scope | --check-prefix=SCOPE
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function padding | --check-prefix=PADDING
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function guard | --check-prefix=GUARD
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function body | --check-prefix=BODY
@I.ir_module
class Module:
    @T.prim_func
    def lanes(A: T.Buffer((32, 16), "float16"), B: T.Buffer((16, 8), "float16"), C: T.Buffer((32, 8), "float32")):
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
                    for k in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for j in range(2):
                            with T.block("C"):
                                vi = T.axis.spatial(32, b * 16 + u * 8 + t % 8)
                                vj = T.axis.spatial(8, t // 8 * 2 + j)
                                vk = T.axis.reduce(16, k)
                                T.reads(A_shared[vi, vk], B_shared[vk, vj])
                                T.writes(C_local[vi, vj])
                                with T.init():
                                    C_local[vi, vj] = T.float32(0)
                                C_local[vi, vj] = C_local[vi, vj] + T.Cast("float32", A_shared[vi, vk]) * T.Cast("float32", B_shared[vk, vj])
                    for j in T.vectorized(2):
                        with T.block("C_local"):
                            vi = T.axis.spatial(32, b * 16 + u * 8 + t % 8)
                            vj = T.axis.spatial(8, t // 8 * 2 + j)
                            T.reads(C_local[vi, vj])
                            T.writes(C[vi, vj])
                            C[vi, vj] = C_local[vi, vj]

    @T.prim_func
    def kind(A: T.Buffer((32, 16), "float16"), B: T.Buffer((16, 8), "float16"), C: T.Buffer((32, 8), "float32")):
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
                    for k in T.serial(16, annotations={"tilefarm.warp_matrix": "wmma"}):
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

    @T.prim_func
    def types(A: T.Buffer((32, 16), "float16"), B: T.Buffer((16, 8), "float16"), C: T.Buffer((32, 8), "float32")):
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
                    for k in T.serial(16, annotations={"tilefarm.warp_matrix": "mma.3xtf32"}):
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

    @T.prim_func
    def model(A: T.Buffer((32, 16), "float16"), B: T.Buffer((16, 8), "float16"), C: T.Buffer((32, 8), "float32")):
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
                    for k in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
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

    @T.prim_func
    def scope(A: T.Buffer((32, 16), "float16"), B: T.Buffer((16, 8), "float16"), C: T.Buffer((32, 8), "float32")):
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
                    for k in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for j in range(2):
                            with T.block("C"):
                                vi = T.axis.spatial(32, b * 16 + u * 8 + t // 4)
                                vj = T.axis.spatial(8, t % 4 * 2 + j)
                                vk = T.axis.reduce(16, k)
                                T.reads(A[vi, vk], B_shared[vk, vj])
                                T.writes(C_local[vi, vj])
                                with T.init():
                                    C_local[vi, vj] = T.float32(0)
                                C_local[vi, vj] = C_local[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B_shared[vk, vj])
                    for j in T.vectorized(2):
                        with T.block("C_local"):
                            vi = T.axis.spatial(32, b * 16 + u * 8 + t // 4)
                            vj = T.axis.spatial(8, t % 4 * 2 + j)
                            T.reads(C_local[vi, vj])
                            T.writes(C[vi, vj])
                            C[vi, vj] = C_local[vi, vj]

    @T.prim_func
    def padding(A: T.Buffer((32, 16), "float16"), B: T.Buffer((16, 8), "float16"), C: T.Buffer((32, 8), "float32")):
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
                            T.block_attr({"buffer_dim_align": [[0, 0, 16, 4]]})
                            A_shared[vi, vk] = A[vi, vk]
                    for x in range(4):
                        with T.block("B_shared"):
                            vk = T.axis.spatial(16, t // 2)
                            vj = T.axis.spatial(8, t % 2 * 4 + x)
                            T.reads(B[vk, vj])
                            T.writes(B_shared[vk, vj])
                            B_shared[vk, vj] = B[vk, vj]
                    for k in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
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

    @T.prim_func
    def guard(A: T.Buffer((32, 16), "float16"), B: T.Buffer((16, 8), "float16"), C: T.Buffer((32, 8), "float32")):
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
                    for k in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for j in range(2):
                            with T.block("C"):
                                vi = T.axis.spatial(32, b * 16 + u * 8 + t // 4)
                                vj = T.axis.spatial(8, t % 4 * 2 + j)
                                vk = T.axis.reduce(16, k)
                                T.where(t < 31)
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

    @T.prim_func
    def body(A: T.Buffer((32, 16), "float16"), B: T.Buffer((16, 8), "float16"), C: T.Buffer((32, 8), "float32")):
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
                    for k in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for j in range(2):
                            with T.block("C"):
                                vi = T.axis.spatial(32, b * 16 + u * 8 + t // 4)
                                vj = T.axis.spatial(8, t % 4 * 2 + j)
                                vk = T.axis.reduce(16, k)
                                T.reads(A_shared[vi, vk], B_shared[vk, vj])
                                T.writes(C_local[vi, vj])
                                with T.init():
                                    C_local[vi, vj] = T.float32(0)
                                C_local[vi, vj] = C_local[vi, vj] + (T.Cast("float32", A_shared[vi, vk]) - T.Cast("float32", B_shared[vk, vj]))
                    for j in T.vectorized(2):
                        with T.block("C_local"):
                            vi = T.axis.spatial(32, b * 16 + u * 8 + t // 4)
                            vj = T.axis.spatial(8, t % 4 * 2 + j)
                            T.reads(C_local[vi, vj])
                            T.writes(C[vi, vj])
                            C[vi, vj] = C_local[vi, vj]
# LANES: loop k: tilefarm.warp_matrix: thread l of a warp does not have the rows l / 4 of one operand and the columns l % 4 * 2 of the other
# KIND: loop k: tilefarm.warp_matrix: there is no kind "wmma" of units
# TYPES: loop k: tilefarm.warp_matrix: no unit of the kind "mma.3xtf32" multiplies float16 by float16 into float32
# MODEL: loop k: tilefarm.warp_matrix: the target has no products m16n8k16.f32.f16.f16.f32; sm_75 has
# SCOPE: loop k: tilefarm.warp_matrix: the operand A is not in a buffer of the scope "shared"
# PADDING: loop k: tilefarm.warp_matrix: rows of A_shared are not contiguous or not aligned to 16 bytes; storage_align pads them
# GUARD: loop k: tilefarm.warp_matrix: loops without conditions and other statements have to be around one store
# BODY: loop k: tilefarm.warp_matrix: its body is no C[..] = C[..] + A[..] * B[..]

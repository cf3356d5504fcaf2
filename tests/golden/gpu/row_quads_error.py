# RUN-FAIL: --stage matrices --target cuda:sm_80 --function iterations | --check-prefix=ITERATIONS
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function other_column | --check-prefix=OTHER_COLUMN
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function eights | --check-prefix=EIGHTS
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function reduction | --check-prefix=REDUCTION
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function digits | --check-prefix=DIGITS
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function element | --check-prefix=ELEMENT
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function shared_loop | --check-prefix=SHARED_LOOP
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function same_element | --check-prefix=SAME_ELEMENT
# RUN-FAIL: --stage matrices --target cuda:sm_80 --function integers | --check-prefix=INTEGERS
# RUN-FAIL: --stage matrices --target opencl --function integers | --check-prefix=OPENCL
@I.ir_module
class Module:
    @T.prim_func
    def iterations(Q: T.Buffer((32, 16), "float16"), K: T.Buffer((32, 16), "float16"), V: T.Buffer((32, 16), "float16"), A: T.Buffer((32, 16), "float32")):
        Qs = T.alloc_buffer((32, 16), "float16", scope="shared")
        Ks = T.alloc_buffer((32, 16), "float16", scope="shared")
        Vs = T.alloc_buffer((32, 16), "float16", scope="shared")
        S = T.alloc_buffer((32, 32), "float32", scope="local")
        M = T.alloc_buffer((32,), "float32", scope="local")
        P = T.alloc_buffer((32, 32), "float16", scope="local")
        O = T.alloc_buffer((32, 16), "float32", scope="local")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for x in T.thread_binding(16, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
                for i in range(4):
                    for y in T.thread_binding(16, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Qs"):
                                vi = T.axis.spatial(32, b * 16 + i * 4 + y % 8 // 2)
                                vk = T.axis.spatial(16, y % 8 % 2 * 8 + v)
                                T.reads(Q[vi, vk])
                                T.writes(Qs[vi, vk])
                                Qs[vi, vk] = Q[vi, vk]
                for i in range(8):
                    for y in T.thread_binding(16, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Ks"):
                                vi = T.axis.spatial(32, i * 4 + y % 8 // 2)
                                vk = T.axis.spatial(16, y % 8 % 2 * 8 + v)
                                T.reads(K[vi, vk])
                                T.writes(Ks[vi, vk])
                                Ks[vi, vk] = K[vi, vk]
                for i in range(32):
                    for y in T.thread_binding(16, thread="threadIdx.x"):
                        for v in range(2):
                            with T.block("Vs"):
                                vi = T.axis.spatial(32, i)
                                vk = T.axis.spatial(16, v * 8 + y % 8)
                                T.reads(V[vi, vk])
                                T.writes(Vs[vi, vk])
                                Vs[vi, vk] = V[vi, vk]
                for k0 in range(1):
                    for k1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for j in range(32):
                                with T.block("S"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x % 8)
                                    vj = T.axis.spatial(32, j)
                                    vk = T.axis.reduce(16, k0 * 16 + k1)
                                    T.reads(Qs[vi, vk], Ks[vj, vk])
                                    T.writes(S[vi, vj])
                                    with T.init():
                                        S[vi, vj] = T.float32(0)
                                    S[vi, vj] = S[vi, vj] + T.Cast("float32", Qs[vi, vk]) * T.Cast("float32", Ks[vj, vk])
                for t in range(2):
                    for j in range(32):
                        with T.block("M"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x % 8)
                            vj = T.axis.reduce(32, j)
                            T.reads(M[vi], S[vi, vj])
                            T.writes(M[vi])
                            with T.init():
                                M[vi] = T.float32(-3.4028234663852886e+38)
                            M[vi] = T.max(M[vi], S[vi, vj])
                for t in range(2):
                    for j in range(32):
                        with T.block("P"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x % 8)
                            vj = T.axis.spatial(32, j)
                            T.reads(S[vi, vj], M[vi])
                            T.writes(P[vi, vj])
                            P[vi, vj] = T.Cast("float16", S[vi, vj] - M[vi])
                for j0 in range(2):
                    for j1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for d in range(16):
                                with T.block("O"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x % 8)
                                    vd = T.axis.spatial(16, d)
                                    vj = T.axis.reduce(32, j0 * 16 + j1)
                                    T.reads(P[vi, vj], Vs[vj, vd])
                                    T.writes(O[vi, vd])
                                    with T.init():
                                        O[vi, vd] = T.float32(0)
                                    O[vi, vd] = O[vi, vd] + T.Cast("float32", P[vi, vj]) * T.Cast("float32", Vs[vj, vd])
                for t in range(2):
                    for d in range(16):
                        with T.block("A"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x % 8)
                            vd = T.axis.spatial(16, d)
                            T.reads(O[vi, vd])
                            T.writes(A[vi, vd])
                            A[vi, vd] = O[vi, vd]

    @T.prim_func
    def other_column(Q: T.Buffer((32, 16), "float16"), K: T.Buffer((32, 16), "float16"), V: T.Buffer((32, 16), "float16"), A: T.Buffer((32, 16), "float32")):
        Qs = T.alloc_buffer((32, 16), "float16", scope="shared")
        Ks = T.alloc_buffer((32, 16), "float16", scope="shared")
        Vs = T.alloc_buffer((32, 16), "float16", scope="shared")
        S = T.alloc_buffer((32, 32), "float32", scope="local")
        M = T.alloc_buffer((32,), "float32", scope="local")
        P = T.alloc_buffer((32, 32), "float16", scope="local")
        O = T.alloc_buffer((32, 16), "float32", scope="local")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
                for i in range(4):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Qs"):
                                vi = T.axis.spatial(32, b * 16 + i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(Q[vi, vk])
                                T.writes(Qs[vi, vk])
                                Qs[vi, vk] = Q[vi, vk]
                for i in range(8):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Ks"):
                                vi = T.axis.spatial(32, i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(K[vi, vk])
                                T.writes(Ks[vi, vk])
                                Ks[vi, vk] = K[vi, vk]
                for i in range(32):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in range(2):
                            with T.block("Vs"):
                                vi = T.axis.spatial(32, i)
                                vk = T.axis.spatial(16, v * 8 + y)
                                T.reads(V[vi, vk])
                                T.writes(Vs[vi, vk])
                                Vs[vi, vk] = V[vi, vk]
                for k0 in range(1):
                    for k1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for j in range(32):
                                with T.block("S"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vj = T.axis.spatial(32, j)
                                    vk = T.axis.reduce(16, k0 * 16 + k1)
                                    T.reads(Qs[vi, vk], Ks[vj, vk])
                                    T.writes(S[vi, vj])
                                    with T.init():
                                        S[vi, vj] = T.float32(0)
                                    S[vi, vj] = S[vi, vj] + T.Cast("float32", Qs[vi, vk]) * T.Cast("float32", Ks[vj, vk])
                for t in range(2):
                    for j in range(32):
                        with T.block("M"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.reduce(32, j)
                            T.reads(M[vi], S[vi, vj])
                            T.writes(M[vi])
                            with T.init():
                                M[vi] = T.float32(-3.4028234663852886e+38)
                            M[vi] = T.max(M[vi], S[vi, vj])
                for t in range(2):
                    for j in range(32):
                        with T.block("P"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.spatial(32, j)
                            T.reads(S[vi, vj], S[vi, 0])
                            T.writes(P[vi, vj])
                            P[vi, vj] = T.Cast("float16", S[vi, vj] - S[vi, 0])
                for j0 in range(2):
                    for j1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for d in range(16):
                                with T.block("O"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vd = T.axis.spatial(16, d)
                                    vj = T.axis.reduce(32, j0 * 16 + j1)
                                    T.reads(P[vi, vj], Vs[vj, vd])
                                    T.writes(O[vi, vd])
                                    with T.init():
                                        O[vi, vd] = T.float32(0)
                                    O[vi, vd] = O[vi, vd] + T.Cast("float32", P[vi, vj]) * T.Cast("float32", Vs[vj, vd])
                for t in range(2):
                    for d in range(16):
                        with T.block("A"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vd = T.axis.spatial(16, d)
                            T.reads(O[vi, vd])
                            T.writes(A[vi, vd])
                            A[vi, vd] = O[vi, vd]

    @T.prim_func
    def eights(Q: T.Buffer((32, 16), "float16"), K: T.Buffer((36, 16), "float16"), V: T.Buffer((36, 16), "float16"), A: T.Buffer((32, 16), "float32")):
        Qs = T.alloc_buffer((32, 16), "float16", scope="shared")
        Ks = T.alloc_buffer((36, 16), "float16", scope="shared")
        Vs = T.alloc_buffer((36, 16), "float16", scope="shared")
        S = T.alloc_buffer((32, 36), "float32", scope="local")
        M = T.alloc_buffer((32,), "float32", scope="local")
        P = T.alloc_buffer((32, 36), "float16", scope="local")
        O = T.alloc_buffer((32, 16), "float32", scope="local")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
                for i in range(4):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Qs"):
                                vi = T.axis.spatial(32, b * 16 + i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(Q[vi, vk])
                                T.writes(Qs[vi, vk])
                                Qs[vi, vk] = Q[vi, vk]
                for i in range(9):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Ks"):
                                vi = T.axis.spatial(36, i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(K[vi, vk])
                                T.writes(Ks[vi, vk])
                                Ks[vi, vk] = K[vi, vk]
                for i in range(36):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in range(2):
                            with T.block("Vs"):
                                vi = T.axis.spatial(36, i)
                                vk = T.axis.spatial(16, v * 8 + y)
                                T.reads(V[vi, vk])
                                T.writes(Vs[vi, vk])
                                Vs[vi, vk] = V[vi, vk]
                for k0 in range(1):
                    for k1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for j in range(36):
                                with T.block("S"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vj = T.axis.spatial(36, j)
                                    vk = T.axis.reduce(16, k0 * 16 + k1)
                                    T.reads(Qs[vi, vk], Ks[vj, vk])
                                    T.writes(S[vi, vj])
                                    with T.init():
                                        S[vi, vj] = T.float32(0)
                                    S[vi, vj] = S[vi, vj] + T.Cast("float32", Qs[vi, vk]) * T.Cast("float32", Ks[vj, vk])
                for t in range(2):
                    for j in range(36):
                        with T.block("M"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.reduce(36, j)
                            T.reads(M[vi], S[vi, vj])
                            T.writes(M[vi])
                            with T.init():
                                M[vi] = T.float32(-3.4028234663852886e+38)
                            M[vi] = T.max(M[vi], S[vi, vj])
                for t in range(2):
                    for j in range(36):
                        with T.block("P"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.spatial(36, j)
                            T.reads(S[vi, vj], M[vi])
                            T.writes(P[vi, vj])
                            P[vi, vj] = T.Cast("float16", S[vi, vj] - M[vi])
                for j0 in range(2):
                    for j1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for d in range(16):
                                with T.block("O"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vd = T.axis.spatial(16, d)
                                    vj = T.axis.reduce(36, j0 * 16 + j1)
                                    T.reads(P[vi, vj], Vs[vj, vd])
                                    T.writes(O[vi, vd])
                                    with T.init():
                                        O[vi, vd] = T.float32(0)
                                    O[vi, vd] = O[vi, vd] + T.Cast("float32", P[vi, vj]) * T.Cast("float32", Vs[vj, vd])
                for t in range(2):
                    for d in range(16):
                        with T.block("A"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vd = T.axis.spatial(16, d)
                            T.reads(O[vi, vd])
                            T.writes(A[vi, vd])
                            A[vi, vd] = O[vi, vd]

    @T.prim_func
    def reduction(Q: T.Buffer((32, 16), "float16"), K: T.Buffer((32, 16), "float16"), V: T.Buffer((32, 16), "float16"), A: T.Buffer((32, 16), "float32")):
        Qs = T.alloc_buffer((32, 16), "float16", scope="shared")
        Ks = T.alloc_buffer((32, 16), "float16", scope="shared")
        Vs = T.alloc_buffer((32, 16), "float16", scope="shared")
        S = T.alloc_buffer((32, 32), "float32", scope="local")
        M = T.alloc_buffer((32,), "float32", scope="local")
        P = T.alloc_buffer((32, 32), "float16", scope="local")
        O = T.alloc_buffer((32, 16), "float32", scope="local")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
                for i in range(4):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Qs"):
                                vi = T.axis.spatial(32, b * 16 + i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(Q[vi, vk])
                                T.writes(Qs[vi, vk])
                                Qs[vi, vk] = Q[vi, vk]
                for i in range(8):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Ks"):
                                vi = T.axis.spatial(32, i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(K[vi, vk])
                                T.writes(Ks[vi, vk])
                                Ks[vi, vk] = K[vi, vk]
                for i in range(32):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in range(2):
                            with T.block("Vs"):
                                vi = T.axis.spatial(32, i)
                                vk = T.axis.spatial(16, v * 8 + y)
                                T.reads(V[vi, vk])
                                T.writes(Vs[vi, vk])
                                Vs[vi, vk] = V[vi, vk]
                for k0 in range(1):
                    for k1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for j in range(32):
                                with T.block("S"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vj = T.axis.spatial(32, j)
                                    vk = T.axis.reduce(16, k0 * 16 + k1)
                                    T.reads(Qs[vi, vk], Ks[vj, vk])
                                    T.writes(S[vi, vj])
                                    with T.init():
                                        S[vi, vj] = T.float32(0)
                                    S[vi, vj] = S[vi, vj] + T.Cast("float32", Qs[vi, vk]) * T.Cast("float32", Ks[vj, vk])
                for t in range(2):
                    for j in range(32):
                        with T.block("M"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.reduce(32, j)
                            T.reads(M[vi], S[vi, vj])
                            T.writes(M[vi])
                            with T.init():
                                M[vi] = T.float32(-3.4028234663852886e+38)
                            M[vi] = T.max(M[vi] * T.float32(2), S[vi, vj])
                for t in range(2):
                    for j in range(32):
                        with T.block("P"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.spatial(32, j)
                            T.reads(S[vi, vj], M[vi])
                            T.writes(P[vi, vj])
                            P[vi, vj] = T.Cast("float16", S[vi, vj] - M[vi])
                for j0 in range(2):
                    for j1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for d in range(16):
                                with T.block("O"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vd = T.axis.spatial(16, d)
                                    vj = T.axis.reduce(32, j0 * 16 + j1)
                                    T.reads(P[vi, vj], Vs[vj, vd])
                                    T.writes(O[vi, vd])
                                    with T.init():
                                        O[vi, vd] = T.float32(0)
                                    O[vi, vd] = O[vi, vd] + T.Cast("float32", P[vi, vj]) * T.Cast("float32", Vs[vj, vd])
                for t in range(2):
                    for d in range(16):
                        with T.block("A"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vd = T.axis.spatial(16, d)
                            T.reads(O[vi, vd])
                            T.writes(A[vi, vd])
                            A[vi, vd] = O[vi, vd]

    @T.prim_func
    def digits(Q: T.Buffer((32, 16), "float16"), K: T.Buffer((48, 16), "float16"), V: T.Buffer((48, 16), "float16"), A: T.Buffer((32, 16), "float32")):
        Qs = T.alloc_buffer((32, 16), "float16", scope="shared")
        Ks = T.alloc_buffer((48, 16), "float16", scope="shared")
        Vs = T.alloc_buffer((48, 16), "float16", scope="shared")
        S = T.alloc_buffer((32, 48), "float32", scope="local")
        M = T.alloc_buffer((32,), "float32", scope="local")
        P = T.alloc_buffer((32, 48), "float16", scope="local")
        O = T.alloc_buffer((32, 16), "float32", scope="local")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
                for i in range(4):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Qs"):
                                vi = T.axis.spatial(32, b * 16 + i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(Q[vi, vk])
                                T.writes(Qs[vi, vk])
                                Qs[vi, vk] = Q[vi, vk]
                for i in range(12):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Ks"):
                                vi = T.axis.spatial(48, i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(K[vi, vk])
                                T.writes(Ks[vi, vk])
                                Ks[vi, vk] = K[vi, vk]
                for i in range(48):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in range(2):
                            with T.block("Vs"):
                                vi = T.axis.spatial(48, i)
                                vk = T.axis.spatial(16, v * 8 + y)
                                T.reads(V[vi, vk])
                                T.writes(Vs[vi, vk])
                                Vs[vi, vk] = V[vi, vk]
                for k0 in range(1):
                    for k1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for j in range(48):
                                with T.block("S"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vj = T.axis.spatial(48, j)
                                    vk = T.axis.reduce(16, k0 * 16 + k1)
                                    T.reads(Qs[vi, vk], Ks[vj, vk])
                                    T.writes(S[vi, vj])
                                    with T.init():
                                        S[vi, vj] = T.float32(0)
                                    S[vi, vj] = S[vi, vj] + T.Cast("float32", Qs[vi, vk]) * T.Cast("float32", Ks[vj, vk])
                for t in range(2):
                    for j in range(48):
                        with T.block("M"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.reduce(48, j)
                            T.reads(M[vi], S[vi, vj])
                            T.writes(M[vi])
                            with T.init():
                                M[vi] = T.float32(-3.4028234663852886e+38)
                            M[vi] = T.max(M[vi], S[vi, vj])
                for t in range(2):
                    for j0 in range(16):
                        for j1 in range(3):
                            with T.block("P"):
                                vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                vj = T.axis.spatial(48, j0 * 3 + j1)
                                T.reads(S[vi, vj], M[vi])
                                T.writes(P[vi, vj])
                                P[vi, vj] = T.Cast("float16", S[vi, vj] - M[vi])
                for j0 in range(3):
                    for j1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for d in range(16):
                                with T.block("O"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vd = T.axis.spatial(16, d)
                                    vj = T.axis.reduce(48, j0 * 16 + j1)
                                    T.reads(P[vi, vj], Vs[vj, vd])
                                    T.writes(O[vi, vd])
                                    with T.init():
                                        O[vi, vd] = T.float32(0)
                                    O[vi, vd] = O[vi, vd] + T.Cast("float32", P[vi, vj]) * T.Cast("float32", Vs[vj, vd])
                for t in range(2):
                    for d in range(16):
                        with T.block("A"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vd = T.axis.spatial(16, d)
                            T.reads(O[vi, vd])
                            T.writes(A[vi, vd])
                            A[vi, vd] = O[vi, vd]

    @T.prim_func
    def element(Q: T.Buffer((32, 16), "float16"), K: T.Buffer((32, 16), "float16"), V: T.Buffer((32, 16), "float16"), A: T.Buffer((32, 16), "float32")):
        Qs = T.alloc_buffer((32, 16), "float16", scope="shared")
        Ks = T.alloc_buffer((32, 16), "float16", scope="shared")
        Vs = T.alloc_buffer((32, 16), "float16", scope="shared")
        S = T.alloc_buffer((32, 32), "float32", scope="local")
        M = T.alloc_buffer((32,), "float32", scope="local")
        P = T.alloc_buffer((32, 32), "float16", scope="local")
        O = T.alloc_buffer((32, 16), "float32", scope="local")
        G = T.alloc_buffer((32,), "float32", scope="local")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
                for i in range(4):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Qs"):
                                vi = T.axis.spatial(32, b * 16 + i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(Q[vi, vk])
                                T.writes(Qs[vi, vk])
                                Qs[vi, vk] = Q[vi, vk]
                for i in range(8):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Ks"):
                                vi = T.axis.spatial(32, i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(K[vi, vk])
                                T.writes(Ks[vi, vk])
                                Ks[vi, vk] = K[vi, vk]
                for i in range(32):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in range(2):
                            with T.block("Vs"):
                                vi = T.axis.spatial(32, i)
                                vk = T.axis.spatial(16, v * 8 + y)
                                T.reads(V[vi, vk])
                                T.writes(Vs[vi, vk])
                                Vs[vi, vk] = V[vi, vk]
                for k0 in range(1):
                    for k1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for j in range(32):
                                with T.block("S"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vj = T.axis.spatial(32, j)
                                    vk = T.axis.reduce(16, k0 * 16 + k1)
                                    T.reads(Qs[vi, vk], Ks[vj, vk])
                                    T.writes(S[vi, vj])
                                    with T.init():
                                        S[vi, vj] = T.float32(0)
                                    S[vi, vj] = S[vi, vj] + T.Cast("float32", Qs[vi, vk]) * T.Cast("float32", Ks[vj, vk])
                for t in range(2):
                    for j in range(32):
                        with T.block("M"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.reduce(32, j)
                            T.reads(M[vi], S[vi, vj])
                            T.writes(M[vi])
                            with T.init():
                                M[vi] = T.float32(-3.4028234663852886e+38)
                            M[vi] = T.max(M[vi], S[vi, vj])
                for t in range(2):
                    for j in range(32):
                        with T.block("P"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.spatial(32, j)
                            T.reads(S[vi, vj], M[vi])
                            T.writes(P[vi, vj])
                            P[vi, vj] = T.Cast("float16", S[vi, vj] - M[vi])
                        with T.block("G"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            T.reads(M[vi])
                            T.writes(G[vi])
                            G[vi] = M[vi]
                for j0 in range(2):
                    for j1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for d in range(16):
                                with T.block("O"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vd = T.axis.spatial(16, d)
                                    vj = T.axis.reduce(32, j0 * 16 + j1)
                                    T.reads(P[vi, vj], Vs[vj, vd])
                                    T.writes(O[vi, vd])
                                    with T.init():
                                        O[vi, vd] = T.float32(0)
                                    O[vi, vd] = O[vi, vd] + T.Cast("float32", P[vi, vj]) * T.Cast("float32", Vs[vj, vd])
                for t in range(2):
                    for d in range(16):
                        with T.block("A"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vd = T.axis.spatial(16, d)
                            T.reads(O[vi, vd], G[vi])
                            T.writes(A[vi, vd])
                            A[vi, vd] = O[vi, vd] + G[vi]

    @T.prim_func
    def shared_loop(Q: T.Buffer((32, 16), "float16"), K: T.Buffer((32, 16), "float16"), V: T.Buffer((32, 16), "float16"), A: T.Buffer((32, 16), "float32")):
        Qs = T.alloc_buffer((32, 16), "float16", scope="shared")
        Ks = T.alloc_buffer((32, 16), "float16", scope="shared")
        Vs = T.alloc_buffer((32, 16), "float16", scope="shared")
        S = T.alloc_buffer((32, 32), "float32", scope="local")
        M = T.alloc_buffer((32,), "float32", scope="local")
        P = T.alloc_buffer((32, 32), "float16", scope="local")
        O = T.alloc_buffer((32, 16), "float32", scope="local")
        G = T.alloc_buffer((32,), "float32", scope="local")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
                for i in range(4):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Qs"):
                                vi = T.axis.spatial(32, b * 16 + i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(Q[vi, vk])
                                T.writes(Qs[vi, vk])
                                Qs[vi, vk] = Q[vi, vk]
                for i in range(8):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Ks"):
                                vi = T.axis.spatial(32, i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(K[vi, vk])
                                T.writes(Ks[vi, vk])
                                Ks[vi, vk] = K[vi, vk]
                for i in range(32):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in range(2):
                            with T.block("Vs"):
                                vi = T.axis.spatial(32, i)
                                vk = T.axis.spatial(16, v * 8 + y)
                                T.reads(V[vi, vk])
                                T.writes(Vs[vi, vk])
                                Vs[vi, vk] = V[vi, vk]
                for k0 in range(1):
                    for k1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for j in range(32):
                                with T.block("S"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vj = T.axis.spatial(32, j)
                                    vk = T.axis.reduce(16, k0 * 16 + k1)
                                    T.reads(Qs[vi, vk], Ks[vj, vk])
                                    T.writes(S[vi, vj])
                                    with T.init():
                                        S[vi, vj] = T.float32(0)
                                    S[vi, vj] = S[vi, vj] + T.Cast("float32", Qs[vi, vk]) * T.Cast("float32", Ks[vj, vk])
                for t in range(2):
                    for j in range(32):
                        with T.block("M"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.reduce(32, j)
                            T.reads(M[vi], S[vi, vj])
                            T.writes(M[vi])
                            with T.init():
                                M[vi] = T.float32(-3.4028234663852886e+38)
                            M[vi] = T.max(M[vi], S[vi, vj])
                for t in range(2):
                    for j in range(32):
                        with T.block("P"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.spatial(32, j)
                            T.reads(S[vi, vj], M[vi])
                            T.writes(P[vi, vj])
                            P[vi, vj] = T.Cast("float16", S[vi, vj] - M[vi])
                        with T.block("G"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.reduce(32, j)
                            T.reads(G[vi], S[vi, vj])
                            T.writes(G[vi])
                            with T.init():
                                G[vi] = T.float32(0)
                            G[vi] = G[vi] + S[vi, vj]
                for j0 in range(2):
                    for j1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for d in range(16):
                                with T.block("O"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vd = T.axis.spatial(16, d)
                                    vj = T.axis.reduce(32, j0 * 16 + j1)
                                    T.reads(P[vi, vj], Vs[vj, vd])
                                    T.writes(O[vi, vd])
                                    with T.init():
                                        O[vi, vd] = T.float32(0)
                                    O[vi, vd] = O[vi, vd] + T.Cast("float32", P[vi, vj]) * T.Cast("float32", Vs[vj, vd])
                for t in range(2):
                    for d in range(16):
                        with T.block("A"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vd = T.axis.spatial(16, d)
                            T.reads(O[vi, vd], G[vi])
                            T.writes(A[vi, vd])
                            A[vi, vd] = O[vi, vd] + G[vi]

    @T.prim_func
    def same_element(Q: T.Buffer((32, 16), "float16"), K: T.Buffer((32, 16), "float16"), V: T.Buffer((32, 16), "float16"), A: T.Buffer((32, 16), "float32"), Z: T.Buffer((32, 16), "float32")):
        Qs = T.alloc_buffer((32, 16), "float16", scope="shared")
        Ks = T.alloc_buffer((32, 16), "float16", scope="shared")
        Vs = T.alloc_buffer((32, 16), "float16", scope="shared")
        S = T.alloc_buffer((32, 32), "float32", scope="local")
        M = T.alloc_buffer((32,), "float32", scope="local")
        P = T.alloc_buffer((32, 32), "float16", scope="local")
        O = T.alloc_buffer((32, 16), "float32", scope="local")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
                for i in range(4):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Qs"):
                                vi = T.axis.spatial(32, b * 16 + i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(Q[vi, vk])
                                T.writes(Qs[vi, vk])
                                Qs[vi, vk] = Q[vi, vk]
                for i in range(8):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Ks"):
                                vi = T.axis.spatial(32, i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(K[vi, vk])
                                T.writes(Ks[vi, vk])
                                Ks[vi, vk] = K[vi, vk]
                for i in range(32):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in range(2):
                            with T.block("Vs"):
                                vi = T.axis.spatial(32, i)
                                vk = T.axis.spatial(16, v * 8 + y)
                                T.reads(V[vi, vk])
                                T.writes(Vs[vi, vk])
                                Vs[vi, vk] = V[vi, vk]
                for k0 in range(1):
                    for k1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for j in range(32):
                                with T.block("S"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vj = T.axis.spatial(32, j)
                                    vk = T.axis.reduce(16, k0 * 16 + k1)
                                    T.reads(Qs[vi, vk], Ks[vj, vk])
                                    T.writes(S[vi, vj])
                                    with T.init():
                                        S[vi, vj] = T.float32(0)
                                    S[vi, vj] = S[vi, vj] + T.Cast("float32", Qs[vi, vk]) * T.Cast("float32", Ks[vj, vk])
                for t in range(2):
                    for j in range(32):
                        with T.block("M"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.reduce(32, j)
                            T.reads(M[vi], S[vi, vj])
                            T.writes(M[vi])
                            with T.init():
                                M[vi] = T.float32(-3.4028234663852886e+38)
                            M[vi] = T.max(M[vi], S[vi, vj])
                for t in range(2):
                    for j in range(32):
                        with T.block("P"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.spatial(32, j)
                            T.reads(S[vi, vj], M[vi])
                            T.writes(P[vi, vj])
                            P[vi, vj] = T.Cast("float16", S[vi, vj] - M[vi])
                for j0 in range(2):
                    for j1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for d in range(16):
                                with T.block("O"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vd = T.axis.spatial(16, d)
                                    vj = T.axis.reduce(32, j0 * 16 + j1)
                                    T.reads(P[vi, vj], Vs[vj, vd])
                                    T.writes(O[vi, vd])
                                    with T.init():
                                        O[vi, vd] = T.float32(0)
                                    O[vi, vd] = O[vi, vd] + T.Cast("float32", P[vi, vj]) * T.Cast("float32", Vs[vj, vd])
                for t in range(2):
                    for d in range(16):
                        with T.block("A"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vd = T.axis.spatial(16, d)
                            T.reads(O[vi, vd])
                            T.writes(A[vi, vd])
                            A[vi, vd] = O[vi, vd]
                for t in range(2):
                    for j in range(32):
                        with T.block("Z"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.opaque(32, j)
                            T.reads(S[vi, vj])
                            T.writes(Z[vi, vj // 2])
                            Z[vi, vj // 2] = S[vi, vj]

    @T.prim_func
    def integers(Q: T.Buffer((32, 16), "float32"), K: T.Buffer((32, 16), "float32"), V: T.Buffer((32, 16), "int8"), A: T.Buffer((32, 16), "int32")):
        Qs = T.alloc_buffer((32, 16), "float32", scope="shared")
        Ks = T.alloc_buffer((32, 16), "float32", scope="shared")
        Vs = T.alloc_buffer((32, 16), "int8", scope="shared")
        S = T.alloc_buffer((32, 32), "float32", scope="local")
        M = T.alloc_buffer((32,), "float32", scope="local")
        P = T.alloc_buffer((32, 32), "int8", scope="local")
        O = T.alloc_buffer((32, 16), "int32", scope="local")
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
                for i in range(4):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Qs"):
                                vi = T.axis.spatial(32, b * 16 + i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(Q[vi, vk])
                                T.writes(Qs[vi, vk])
                                Qs[vi, vk] = Q[vi, vk]
                for i in range(8):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(8):
                            with T.block("Ks"):
                                vi = T.axis.spatial(32, i * 4 + y // 2)
                                vk = T.axis.spatial(16, y % 2 * 8 + v)
                                T.reads(K[vi, vk])
                                T.writes(Ks[vi, vk])
                                Ks[vi, vk] = K[vi, vk]
                for i in range(32):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in range(2):
                            with T.block("Vs"):
                                vi = T.axis.spatial(32, i)
                                vk = T.axis.spatial(16, v * 8 + y)
                                T.reads(V[vi, vk])
                                T.writes(Vs[vi, vk])
                                Vs[vi, vk] = V[vi, vk]
                for k0 in range(2):
                    for k1 in T.serial(8, annotations={"tilefarm.warp_matrix": "mma.3xtf32"}):
                        for t in range(2):
                            for j in range(32):
                                with T.block("S"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vj = T.axis.spatial(32, j)
                                    vk = T.axis.reduce(16, k0 * 8 + k1)
                                    T.reads(Qs[vi, vk], Ks[vj, vk])
                                    T.writes(S[vi, vj])
                                    with T.init():
                                        S[vi, vj] = T.float32(0)
                                    S[vi, vj] = S[vi, vj] + Qs[vi, vk] * Ks[vj, vk]
                for t in range(2):
                    for j in range(32):
                        with T.block("M"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.reduce(32, j)
                            T.reads(M[vi], S[vi, vj])
                            T.writes(M[vi])
                            with T.init():
                                M[vi] = T.float32(-3.4028234663852886e+38)
                            M[vi] = T.max(M[vi], S[vi, vj])
                for t in range(2):
                    for j in range(32):
                        with T.block("P"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vj = T.axis.spatial(32, j)
                            T.reads(S[vi, vj], M[vi])
                            T.writes(P[vi, vj])
                            P[vi, vj] = T.Cast("int8", S[vi, vj] - M[vi])
                for j0 in range(1):
                    for j1 in T.serial(32, annotations={"tilefarm.warp_matrix": "mma"}):
                        for t in range(2):
                            for d in range(16):
                                with T.block("O"):
                                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                                    vd = T.axis.spatial(16, d)
                                    vj = T.axis.reduce(32, j0 * 32 + j1)
                                    T.reads(P[vi, vj], Vs[vj, vd])
                                    T.writes(O[vi, vd])
                                    with T.init():
                                        O[vi, vd] = T.int32(0)
                                    O[vi, vd] = O[vi, vd] + T.Cast("int32", P[vi, vj]) * T.Cast("int32", Vs[vj, vd])
                for t in range(2):
                    for d in range(16):
                        with T.block("A"):
                            vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                            vd = T.axis.spatial(16, d)
                            T.reads(O[vi, vd])
                            T.writes(A[vi, vd])
                            A[vi, vd] = O[vi, vd]
# ITERATIONS: loop threadIdx_x: tilefarm.row_quads: threadIdx.x has 16 iterations; 8 rows of quads are a warp
# OTHER_COLUMN: buffer S: tilefarm.row_quads: the store to P reads another column than j, which other lanes may have
# EIGHTS: buffer S: tilefarm.row_quads: it has 36 columns, not a multiple of 8
# REDUCTION: buffer M: tilefarm.row_quads: columns are combined into an element that has none, and not by a sum, product, minimum or maximum of that element alone
# DIGITS: buffer P: tilefarm.row_quads: its column j0 * 3 + j1 depends on loop j0 in another way than by digits of 2 and 4 columns
# ELEMENT: loop j: tilefarm.row_quads: it is over columns, and a store to G in it is not
# SHARED_LOOP: buffer G: tilefarm.row_quads: the loops over the columns that it combines have to be around nothing else
# SAME_ELEMENT: buffer Z: tilefarm.row_quads: lanes would write the same element in different iterations of loop j
# INTEGERS: tilefarm.warp_matrix: an operand in registers has numbers of 16 or 32 bits, not int8
# OPENCL: loop threadIdx_x: tilefarm.row_quads: the target cannot exchange values within a warp

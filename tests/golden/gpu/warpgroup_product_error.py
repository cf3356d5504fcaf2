# RUN-FAIL: --stage pipeline --target cuda:sm_90a --function stages | --check-prefix=STAGES
# RUN-FAIL: --stage pipeline --target cuda:sm_90a --function sums | --check-prefix=SUMS
# RUN-FAIL: --stage pipeline --target cuda:sm_90a --function types | --check-prefix=TYPES
# RUN-FAIL: --stage pipeline --target cuda:sm_90a --function rows | --check-prefix=ROWS
# RUN-FAIL: --stage pipeline --target cuda:sm_90a --function boxes | --check-prefix=BOXES
# RUN-FAIL: --stage pipeline --target cuda:sm_90a --function across | --check-prefix=ACROSS
# RUN-FAIL: --stage pipeline --target cuda:sm_90a --function once | --check-prefix=ONCE
# RUN-FAIL: --stage pipeline --target cuda:sm_80 --function model | --check-prefix=MODEL
# RUN-FAIL: --stage asm --target opencl:generic --function model | --check-prefix=MODEL
@I.ir_module
class Module:
    @T.prim_func
    def stages(A: T.Buffer((64, 128), "bfloat16"), B: T.Buffer((64, 128), "bfloat16"), C: T.Buffer((64, 64), "bfloat16")):
        T.func_attr({"global_symbol": "stages", "tir.noalias": True})
        P_local = T.alloc_buffer((64, 64), "float32", scope="local")
        A_shared = T.alloc_buffer((64, 128), "bfloat16", scope="shared")
        B_shared = T.alloc_buffer((64, 128), "bfloat16", scope="shared")
        for i_0_j_0_i_1_fused in T.thread_binding(1, thread="blockIdx.x"):
            for i_3 in T.thread_binding(1, thread="vthread.z"):
                for i_5 in T.thread_binding(2, thread="vthread.y"):
                    for j_1 in T.thread_binding(8, thread="vthread.x"):
                        for i_2_i_4_i_6_j_2_fused in T.thread_binding(128, thread="threadIdx.x"):
                            for k_0 in T.serial(2, annotations={"tilefarm.warpgroup_stages": 1}):
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("A_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(128, k_0 * 64 + ax1)
                                        T.reads(A[v0, v1])
                                        T.writes(A_shared[v0, v1])
                                        A_shared[v0, v1] = A[v0, v1]
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("B_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(128, k_0 * 64 + ax1)
                                        T.reads(B[v0, v1])
                                        T.writes(B_shared[v0, v1])
                                        B_shared[v0, v1] = B[v0, v1]
                                for k_1, j_3 in T.grid(64, 2):
                                    with T.block("P"):
                                        vi = T.axis.spatial(64, i_3 * 64 + i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + j_3)
                                        vk = T.axis.reduce(128, k_0 * 64 + k_1)
                                        T.reads(A_shared[vi, vk], B_shared[vj, vk])
                                        T.writes(P_local[vi, vj])
                                        with T.init():
                                            P_local[vi, vj] = T.float32(0.0)
                                        P_local[vi, vj] = P_local[vi, vj] + T.Cast("float32", A_shared[vi, vk]) * T.Cast("float32", B_shared[vj, vk])
                            for ax0 in range(1):
                                for ax1 in T.vectorized(2):
                                    with T.block("C"):
                                        vi = T.axis.spatial(64, i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4 + ax0)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + ax1)
                                        T.reads(P_local[vi, vj])
                                        T.writes(C[vi, vj])
                                        C[vi, vj] = T.Cast("bfloat16", P_local[vi, vj])

    @T.prim_func
    def sums(A: T.Buffer((64, 128), "bfloat16"), B: T.Buffer((64, 128), "bfloat16"), C: T.Buffer((64, 64), "bfloat16")):
        T.func_attr({"global_symbol": "sums", "tir.noalias": True})
        P_local = T.alloc_buffer((64, 64), "float32", scope="local")
        A_shared = T.alloc_buffer((64, 128), "bfloat16", scope="shared")
        B_shared = T.alloc_buffer((64, 128), "bfloat16", scope="shared")
        for i_0_j_0_i_1_fused in T.thread_binding(1, thread="blockIdx.x"):
            for i_3 in T.thread_binding(1, thread="vthread.z"):
                for i_5 in T.thread_binding(2, thread="vthread.y"):
                    for j_1 in T.thread_binding(8, thread="vthread.x"):
                        for i_2_i_4_j_2_i_6_fused in T.thread_binding(128, thread="threadIdx.x"):
                            for k_0 in T.serial(2, annotations={"tilefarm.warpgroup_stages": 2}):
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("A_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(128, k_0 * 64 + ax1)
                                        T.reads(A[v0, v1])
                                        T.writes(A_shared[v0, v1])
                                        A_shared[v0, v1] = A[v0, v1]
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("B_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(128, k_0 * 64 + ax1)
                                        T.reads(B[v0, v1])
                                        T.writes(B_shared[v0, v1])
                                        B_shared[v0, v1] = B[v0, v1]
                                for k_1, j_3 in T.grid(64, 2):
                                    with T.block("P"):
                                        vi = T.axis.spatial(64, i_3 * 64 + i_2_i_4_j_2_i_6_fused // 32 * 16 + i_5 * 8 + i_2_i_4_j_2_i_6_fused % 8)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_j_2_i_6_fused % 32 // 8 * 2 + j_3)
                                        vk = T.axis.reduce(128, k_0 * 64 + k_1)
                                        T.reads(A_shared[vi, vk], B_shared[vj, vk])
                                        T.writes(P_local[vi, vj])
                                        with T.init():
                                            P_local[vi, vj] = T.float32(0.0)
                                        P_local[vi, vj] = P_local[vi, vj] + T.Cast("float32", A_shared[vi, vk]) * T.Cast("float32", B_shared[vj, vk])
                            for ax0 in range(1):
                                for ax1 in T.vectorized(2):
                                    with T.block("C"):
                                        vi = T.axis.spatial(64, i_2_i_4_j_2_i_6_fused // 32 * 16 + i_5 * 8 + i_2_i_4_j_2_i_6_fused % 8 + ax0)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_j_2_i_6_fused % 32 // 8 * 2 + ax1)
                                        T.reads(P_local[vi, vj])
                                        T.writes(C[vi, vj])
                                        C[vi, vj] = T.Cast("bfloat16", P_local[vi, vj])

    @T.prim_func
    def types(A: T.Buffer((64, 128), "bfloat16"), B: T.Buffer((64, 128), "bfloat16"), C: T.Buffer((64, 64), "bfloat16")):
        T.func_attr({"global_symbol": "types", "tir.noalias": True})
        P_local = T.alloc_buffer((64, 64), "float64", scope="local")
        A_shared = T.alloc_buffer((64, 128), "bfloat16", scope="shared")
        B_shared = T.alloc_buffer((64, 128), "bfloat16", scope="shared")
        for i_0_j_0_i_1_fused in T.thread_binding(1, thread="blockIdx.x"):
            for i_3 in T.thread_binding(1, thread="vthread.z"):
                for i_5 in T.thread_binding(2, thread="vthread.y"):
                    for j_1 in T.thread_binding(8, thread="vthread.x"):
                        for i_2_i_4_i_6_j_2_fused in T.thread_binding(128, thread="threadIdx.x"):
                            for k_0 in T.serial(2, annotations={"tilefarm.warpgroup_stages": 2}):
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("A_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(128, k_0 * 64 + ax1)
                                        T.reads(A[v0, v1])
                                        T.writes(A_shared[v0, v1])
                                        A_shared[v0, v1] = A[v0, v1]
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("B_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(128, k_0 * 64 + ax1)
                                        T.reads(B[v0, v1])
                                        T.writes(B_shared[v0, v1])
                                        B_shared[v0, v1] = B[v0, v1]
                                for k_1, j_3 in T.grid(64, 2):
                                    with T.block("P"):
                                        vi = T.axis.spatial(64, i_3 * 64 + i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + j_3)
                                        vk = T.axis.reduce(128, k_0 * 64 + k_1)
                                        T.reads(A_shared[vi, vk], B_shared[vj, vk])
                                        T.writes(P_local[vi, vj])
                                        with T.init():
                                            P_local[vi, vj] = T.float64(0.0)
                                        P_local[vi, vj] = P_local[vi, vj] + T.Cast("float64", A_shared[vi, vk]) * T.Cast("float64", B_shared[vj, vk])
                            for ax0 in range(1):
                                for ax1 in T.vectorized(2):
                                    with T.block("C"):
                                        vi = T.axis.spatial(64, i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4 + ax0)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + ax1)
                                        T.reads(P_local[vi, vj])
                                        T.writes(C[vi, vj])
                                        C[vi, vj] = T.Cast("bfloat16", P_local[vi, vj])

    @T.prim_func
    def rows(A: T.Buffer((64, 100), "bfloat16"), B: T.Buffer((64, 100), "bfloat16"), C: T.Buffer((64, 64), "bfloat16")):
        T.func_attr({"global_symbol": "rows", "tir.noalias": True})
        P_local = T.alloc_buffer((64, 64), "float32", scope="local")
        A_shared = T.alloc_buffer((64, 100), "bfloat16", scope="shared")
        B_shared = T.alloc_buffer((64, 100), "bfloat16", scope="shared")
        for i_0_j_0_i_1_fused in T.thread_binding(1, thread="blockIdx.x"):
            for i_3 in T.thread_binding(1, thread="vthread.z"):
                for i_5 in T.thread_binding(2, thread="vthread.y"):
                    for j_1 in T.thread_binding(8, thread="vthread.x"):
                        for i_2_i_4_i_6_j_2_fused in T.thread_binding(128, thread="threadIdx.x"):
                            for k_0 in T.serial(2, annotations={"tilefarm.warpgroup_stages": 2}):
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("A_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(100, k_0 * 64 + ax1)
                                        T.where(k_0 * 64 + ax1 < 100)
                                        T.reads(A[v0, v1])
                                        T.writes(A_shared[v0, v1])
                                        A_shared[v0, v1] = A[v0, v1]
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("B_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(100, k_0 * 64 + ax1)
                                        T.where(k_0 * 64 + ax1 < 100)
                                        T.reads(B[v0, v1])
                                        T.writes(B_shared[v0, v1])
                                        B_shared[v0, v1] = B[v0, v1]
                                for k_1, j_3 in T.grid(64, 2):
                                    with T.block("P"):
                                        vi = T.axis.spatial(64, i_3 * 64 + i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + j_3)
                                        vk = T.axis.reduce(100, k_0 * 64 + k_1)
                                        T.where(k_0 * 64 + k_1 < 100)
                                        T.reads(A_shared[vi, vk], B_shared[vj, vk])
                                        T.writes(P_local[vi, vj])
                                        with T.init():
                                            P_local[vi, vj] = T.float32(0.0)
                                        P_local[vi, vj] = P_local[vi, vj] + T.Cast("float32", A_shared[vi, vk]) * T.Cast("float32", B_shared[vj, vk])
                            for ax0 in range(1):
                                for ax1 in T.vectorized(2):
                                    with T.block("C"):
                                        vi = T.axis.spatial(64, i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4 + ax0)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + ax1)
                                        T.reads(P_local[vi, vj])
                                        T.writes(C[vi, vj])
                                        C[vi, vj] = T.Cast("bfloat16", P_local[vi, vj])

    @T.prim_func
    def boxes(A: T.Buffer((64, 128), "bfloat16"), B: T.Buffer((68, 128), "bfloat16"), C: T.Buffer((64, 68), "bfloat16")):
        T.func_attr({"global_symbol": "boxes", "tir.noalias": True})
        P_local = T.alloc_buffer((64, 68), "float32", scope="local")
        A_shared = T.alloc_buffer((64, 128), "bfloat16", scope="shared")
        B_shared = T.alloc_buffer((68, 128), "bfloat16", scope="shared")
        for i_0_j_0_i_1_fused in T.thread_binding(2, thread="blockIdx.x"):
            for i_3 in T.thread_binding(1, thread="vthread.z"):
                for i_5 in T.thread_binding(2, thread="vthread.y"):
                    for j_1 in T.thread_binding(8, thread="vthread.x"):
                        for i_2_i_4_i_6_j_2_fused in T.thread_binding(128, thread="threadIdx.x"):
                            for k_0 in T.serial(2, annotations={"tilefarm.box_stores": 1, "tilefarm.warpgroup_stages": 2}):
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("A_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(128, k_0 * 64 + ax1)
                                        T.reads(A[v0, v1])
                                        T.writes(A_shared[v0, v1])
                                        A_shared[v0, v1] = A[v0, v1]
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("B_shared"):
                                        v0 = T.axis.spatial(68, i_0_j_0_i_1_fused * 64 + ax0)
                                        v1 = T.axis.spatial(128, k_0 * 64 + ax1)
                                        T.where(i_0_j_0_i_1_fused * 64 + ax0 < 68)
                                        T.reads(B[v0, v1])
                                        T.writes(B_shared[v0, v1])
                                        B_shared[v0, v1] = B[v0, v1]
                                for k_1, j_3 in T.grid(64, 2):
                                    with T.block("P"):
                                        vi = T.axis.spatial(64, i_3 * 64 + i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4)
                                        vj = T.axis.spatial(68, i_0_j_0_i_1_fused * 64 + j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + j_3)
                                        vk = T.axis.reduce(128, k_0 * 64 + k_1)
                                        T.where(((i_0_j_0_i_1_fused % 2 * 8 + j_1) * 4 + i_2_i_4_i_6_j_2_fused % 4) * 2 + j_3 < 68)
                                        T.reads(A_shared[vi, vk], B_shared[vj, vk])
                                        T.writes(P_local[vi, vj])
                                        with T.init():
                                            P_local[vi, vj] = T.float32(0.0)
                                        P_local[vi, vj] = P_local[vi, vj] + T.Cast("float32", A_shared[vi, vk]) * T.Cast("float32", B_shared[vj, vk])
                            for ax0 in range(1):
                                for ax1 in T.vectorized(2):
                                    with T.block("C"):
                                        vi = T.axis.spatial(64, i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4 + ax0)
                                        vj = T.axis.spatial(68, i_0_j_0_i_1_fused * 64 + j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + ax1)
                                        T.where(i_0_j_0_i_1_fused * 64 + j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + ax1 < 68)
                                        T.reads(P_local[vi, vj])
                                        T.writes(C[vi, vj])
                                        C[vi, vj] = T.Cast("bfloat16", P_local[vi, vj])

    @T.prim_func
    def across(A: T.Buffer((64, 256), "int8"), B: T.Buffer((256, 128), "int8"), C: T.Buffer((64, 128), "int32")):
        T.func_attr({"global_symbol": "across", "tir.noalias": True})
        C_local = T.alloc_buffer((64, 128), "int32", scope="local")
        A_shared = T.alloc_buffer((64, 256), "int8", scope="shared")
        B_shared = T.alloc_buffer((256, 128), "int8", scope="shared")
        for i_0_j_0_i_1_fused in T.thread_binding(1, thread="blockIdx.x"):
            for i_3 in T.thread_binding(1, thread="vthread.z"):
                for i_5 in T.thread_binding(2, thread="vthread.y"):
                    for j_1 in T.thread_binding(16, thread="vthread.x"):
                        for i_2_i_4_i_6_j_2_fused in T.thread_binding(128, thread="threadIdx.x"):
                            for k_0 in T.serial(2, annotations={"tilefarm.warpgroup_stages": 2}):
                                for ax0, ax1 in T.grid(64, 128):
                                    with T.block("A_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(256, k_0 * 128 + ax1)
                                        T.reads(A[v0, v1])
                                        T.writes(A_shared[v0, v1])
                                        A_shared[v0, v1] = A[v0, v1]
                                for ax0, ax1 in T.grid(128, 128):
                                    with T.block("B_shared"):
                                        v0 = T.axis.spatial(256, k_0 * 128 + ax0)
                                        v1 = T.axis.spatial(128, ax1)
                                        T.reads(B[v0, v1])
                                        T.writes(B_shared[v0, v1])
                                        B_shared[v0, v1] = B[v0, v1]
                                for k_1, j_3 in T.grid(128, 2):
                                    with T.block("P"):
                                        vi = T.axis.spatial(64, i_3 * 64 + i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4)
                                        vj = T.axis.spatial(128, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + j_3)
                                        vk = T.axis.reduce(256, k_0 * 128 + k_1)
                                        T.reads(A_shared[vi, vk], B_shared[vk, vj])
                                        T.writes(C_local[vi, vj])
                                        with T.init():
                                            C_local[vi, vj] = T.int32(0)
                                        C_local[vi, vj] = C_local[vi, vj] + T.Cast("int32", A_shared[vi, vk]) * T.Cast("int32", B_shared[vk, vj])
                            for ax0 in range(1):
                                for ax1 in T.vectorized(2):
                                    with T.block("C_local"):
                                        v0 = T.axis.spatial(64, i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4 + ax0)
                                        v1 = T.axis.spatial(128, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + ax1)
                                        T.reads(C_local[v0, v1])
                                        T.writes(C[v0, v1])
                                        C[v0, v1] = C_local[v0, v1]

    @T.prim_func
    def once(A: T.Buffer((64, 64), "bfloat16"), B: T.Buffer((64, 64), "bfloat16"), C: T.Buffer((64, 64), "bfloat16")):
        T.func_attr({"global_symbol": "once", "tir.noalias": True})
        P_local = T.alloc_buffer((64, 64), "float32", scope="local")
        A_shared = T.alloc_buffer((64, 64), "bfloat16", scope="shared")
        B_shared = T.alloc_buffer((64, 64), "bfloat16", scope="shared")
        for i_0_j_0_i_1_fused in T.thread_binding(1, thread="blockIdx.x"):
            for i_3 in T.thread_binding(1, thread="vthread.z"):
                for i_5 in T.thread_binding(2, thread="vthread.y"):
                    for j_1 in T.thread_binding(8, thread="vthread.x"):
                        for i_2_i_4_i_6_j_2_fused in T.thread_binding(128, thread="threadIdx.x"):
                            for k_0 in T.serial(1, annotations={"tilefarm.warpgroup_stages": 2}):
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("A_shared"):
                                        v0, v1 = T.axis.remap("SS", [ax0, ax1])
                                        T.reads(A[v0, v1])
                                        T.writes(A_shared[v0, v1])
                                        A_shared[v0, v1] = A[v0, v1]
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("B_shared"):
                                        v0, v1 = T.axis.remap("SS", [ax0, ax1])
                                        T.reads(B[v0, v1])
                                        T.writes(B_shared[v0, v1])
                                        B_shared[v0, v1] = B[v0, v1]
                                for k_1, j_3 in T.grid(64, 2):
                                    with T.block("P"):
                                        vi = T.axis.spatial(64, i_3 * 64 + i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + j_3)
                                        vk = T.axis.reduce(64, k_0 * 64 + k_1)
                                        T.reads(A_shared[vi, vk], B_shared[vj, vk])
                                        T.writes(P_local[vi, vj])
                                        with T.init():
                                            P_local[vi, vj] = T.float32(0.0)
                                        P_local[vi, vj] = P_local[vi, vj] + T.Cast("float32", A_shared[vi, vk]) * T.Cast("float32", B_shared[vj, vk])
                            for ax0 in range(1):
                                for ax1 in T.vectorized(2):
                                    with T.block("C"):
                                        vi = T.axis.spatial(64, i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4 + ax0)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + ax1)
                                        T.reads(P_local[vi, vj])
                                        T.writes(C[vi, vj])
                                        C[vi, vj] = T.Cast("bfloat16", P_local[vi, vj])

    @T.prim_func
    def model(A: T.Buffer((64, 128), "bfloat16"), B: T.Buffer((64, 128), "bfloat16"), C: T.Buffer((64, 64), "bfloat16")):
        T.func_attr({"global_symbol": "model", "tir.noalias": True})
        P_local = T.alloc_buffer((64, 64), "float32", scope="local")
        A_shared = T.alloc_buffer((64, 128), "bfloat16", scope="shared")
        B_shared = T.alloc_buffer((64, 128), "bfloat16", scope="shared")
        for i_0_j_0_i_1_fused in T.thread_binding(1, thread="blockIdx.x"):
            for i_3 in T.thread_binding(1, thread="vthread.z"):
                for i_5 in T.thread_binding(2, thread="vthread.y"):
                    for j_1 in T.thread_binding(8, thread="vthread.x"):
                        for i_2_i_4_i_6_j_2_fused in T.thread_binding(128, thread="threadIdx.x"):
                            for k_0 in T.serial(2, annotations={"tilefarm.warpgroup_stages": 2}):
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("A_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(128, k_0 * 64 + ax1)
                                        T.reads(A[v0, v1])
                                        T.writes(A_shared[v0, v1])
                                        A_shared[v0, v1] = A[v0, v1]
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("B_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(128, k_0 * 64 + ax1)
                                        T.reads(B[v0, v1])
                                        T.writes(B_shared[v0, v1])
                                        B_shared[v0, v1] = B[v0, v1]
                                for k_1, j_3 in T.grid(64, 2):
                                    with T.block("P"):
                                        vi = T.axis.spatial(64, i_3 * 64 + i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + j_3)
                                        vk = T.axis.reduce(128, k_0 * 64 + k_1)
                                        T.reads(A_shared[vi, vk], B_shared[vj, vk])
                                        T.writes(P_local[vi, vj])
                                        with T.init():
                                            P_local[vi, vj] = T.float32(0.0)
                                        P_local[vi, vj] = P_local[vi, vj] + T.Cast("float32", A_shared[vi, vk]) * T.Cast("float32", B_shared[vj, vk])
                            for ax0 in range(1):
                                for ax1 in T.vectorized(2):
                                    with T.block("C"):
                                        vi = T.axis.spatial(64, i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4 + ax0)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + ax1)
                                        T.reads(P_local[vi, vj])
                                        T.writes(C[vi, vj])
                                        C[vi, vj] = T.Cast("bfloat16", P_local[vi, vj])
# STAGES: it needs from 2 to 16 stages
# SUMS: the threads have other sums than the matrix unit gives them
# TYPES: the matrix unit has no products of bfloat16 and bfloat16 with sums of float64
# ROWS: rows of A are 200 bytes apart; the copy engine needs a multiple of 16
# BOXES: the rows of C are no multiple of 16 bytes
# ACROSS: rows of int8 must be along the common dimension
# ONCE: or a loop of one iteration
# MODEL: the target has no matrix units of warpgroups

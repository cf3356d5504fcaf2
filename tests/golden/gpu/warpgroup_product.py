# RUN: --stage lowered --target cuda:sm_90a
# RUN: --stage asm --target cuda:sm_90a | --check-prefix=ASM
# One more warp fetches tiles; a warpgroup multiplies them and lets the copy
# engine write the result.
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 256), "bfloat16"), B: T.Buffer((64, 256), "bfloat16"), C: T.Buffer((64, 64), "bfloat16")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        P_local = T.alloc_buffer((64, 64), "float32", scope="local")
        A_shared = T.alloc_buffer((64, 256), "bfloat16", scope="shared")
        B_shared = T.alloc_buffer((64, 256), "bfloat16", scope="shared")
        for i_0_j_0_i_1_fused in T.thread_binding(1, thread="blockIdx.x"):
            for i_3 in T.thread_binding(1, thread="vthread.z"):
                for i_5 in T.thread_binding(2, thread="vthread.y"):
                    for j_1 in T.thread_binding(8, thread="vthread.x"):
                        for i_2_i_4_i_6_j_2_fused in T.thread_binding(128, thread="threadIdx.x"):
                            for k_0 in T.serial(4, annotations={"tilefarm.box_stores": 1, "tilefarm.warpgroup_stages": 2}):
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("A_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(256, k_0 * 64 + ax1)
                                        T.reads(A[v0, v1])
                                        T.writes(A_shared[v0, v1])
                                        A_shared[v0, v1] = A[v0, v1]
                                for ax0, ax1 in T.grid(64, 64):
                                    with T.block("B_shared"):
                                        v0 = T.axis.spatial(64, ax0)
                                        v1 = T.axis.spatial(256, k_0 * 64 + ax1)
                                        T.reads(B[v0, v1])
                                        T.writes(B_shared[v0, v1])
                                        B_shared[v0, v1] = B[v0, v1]
                                for k_1, j_3 in T.grid(64, 2):
                                    with T.block("P"):
                                        vi = T.axis.spatial(64, i_3 * 64 + i_2_i_4_i_6_j_2_fused // 32 * 16 + i_5 * 8 + i_2_i_4_i_6_j_2_fused % 32 // 4)
                                        vj = T.axis.spatial(64, j_1 * 8 + i_2_i_4_i_6_j_2_fused % 4 * 2 + j_3)
                                        vk = T.axis.reduce(256, k_0 * 64 + k_1)
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
# CHECK: for threadIdx_x in T.thread_binding(160
# CHECK: T.barrier_init(barriers[0], 1)
# CHECK-NEXT: T.barrier_init(barriers[2], 4)
# CHECK: T.evaluate(T.barrier())
# CHECK: T.LetStmt(T.uniform(threadIdx_x // 128)) as warpgroup
# CHECK-NEXT: if warpgroup == 1:
# CHECK-NEXT: if threadIdx_x == 128:
# CHECK-NEXT: for k_0 in range(4):
# CHECK-NEXT: T.barrier_wait(barriers[k_0 % 2 + 2], {{.*}}1
# CHECK-NEXT: T.barrier_expect(barriers[{{k_0.*}}], 16384)
# CHECK-NEXT: T.copy_box(A[0], A_shared[{{.*}}], barriers[{{.*}}], {{.*}}k_0 * 64, 1, 1, 1, 64, 256, 1, 1, 1, 64, 64)
# CHECK-NEXT: T.copy_box(B[0], B_shared[
# CHECK: else:
# CHECK: for k_0 in range(4):
# CHECK-NEXT: T.barrier_wait(barriers[
# CHECK-NEXT: T.product_fence(P_local[0], 32)
# CHECK-NEXT: T.warpgroup_product(P_local[0], A_shared[{{.*}}], B_shared[{{.*}}], 64, 0, 0, 16, 2, 1, 1)
# CHECK-NEXT: T.warpgroup_product(P_local[0], A_shared[{{.*}} + 16], B_shared[{{.*}} + 16]
# CHECK-NEXT: T.warpgroup_product(
# CHECK-NEXT: T.warpgroup_product(
# CHECK-NEXT: T.product_commit()
# CHECK-NEXT: T.product_wait(1, P_local[0], 32)
# CHECK-NEXT: T.barrier_arrive(barriers[{{.*}}], threadIdx_x % 32 == 0 and 0 < k_0)
# CHECK-NEXT: T.product_wait(0, P_local[0], 32)
# CHECK: T.box_store_wait(1)
# CHECK: T.warpgroup_barrier(warpgroup)
# CHECK: C_tiles[
# CHECK: T.box_fence()
# CHECK: T.warpgroup_barrier(warpgroup)
# CHECK: T.store_box(C[0], C_tiles[
# CHECK: T.box_store_commit()
# CHECK: T.box_store_wait(0)
# ASM: .param .align 64 .b8 tilefarm_main_kernel0_param_0[128]
# ASM: .maxntid 160
# ASM: cp.async.bulk.tensor.2d.shared::cluster
# ASM: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
# ASM: cvt.rn.bf16x2.f32
# ASM: cp.async.bulk.tensor.2d.global.shared::cta

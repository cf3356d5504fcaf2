# RUN: --target cuda:sm_90a --default --allow-rounding --stage lowered
# RUN: --target cuda:sm_90a --default --allow-rounding --stage asm | --check-prefix=ASM
# RUN: --target cuda:sm_90a --default --allow-rounding --stage trace | --check-prefix=TRACE
# Warpgroups multiply; one thread of one more warp fetches queries once, and keys
# and values chunk by chunk. The second product's first operand is in registers,
# and its terms are added to the scaled sums at once.
@T.prim_func
def main(Q: T.Buffer((128, 64), "float16"),
         K: T.Buffer((512, 64), "float16"),
         V: T.Buffer((512, 128), "float16"),
         O: T.Buffer((128, 128), "float32")):
    S = T.alloc_buffer((128, 512), "float32")
    M = T.alloc_buffer((128,), "float32")
    E = T.alloc_buffer((128, 512), "float32")
    D = T.alloc_buffer((128,), "float32")
    P = T.alloc_buffer((128, 512), "float16")
    for i0, i1, i2 in T.grid(128, 512, 64):
        with T.block("S"):
            v0, v1, v2 = T.axis.remap("SSR", [i0, i1, i2])
            with T.init():
                S[v0, v1] = T.float32(0)
            S[v0, v1] = S[v0, v1] + T.Cast("float32", Q[v0, v2]) * T.Cast("float32", K[v1, v2])
    for i0, i1 in T.grid(128, 512):
        with T.block("M"):
            v0, v1 = T.axis.remap("SR", [i0, i1])
            with T.init():
                M[v0] = T.float32(-3.4028234663852886e+38)
            M[v0] = T.max(M[v0], S[v0, v1])
    for i0, i1 in T.grid(128, 512):
        with T.block("E"):
            v0, v1 = T.axis.remap("SS", [i0, i1])
            E[v0, v1] = T.exp(S[v0, v1] - M[v0])
    for i0, i1 in T.grid(128, 512):
        with T.block("D"):
            v0, v1 = T.axis.remap("SR", [i0, i1])
            with T.init():
                D[v0] = T.float32(0)
            D[v0] = D[v0] + E[v0, v1]
    for i0, i1 in T.grid(128, 512):
        with T.block("P"):
            v0, v1 = T.axis.remap("SS", [i0, i1])
            P[v0, v1] = T.Cast("float16", E[v0, v1] / D[v0])
    for i0, i1, i2 in T.grid(128, 128, 512):
        with T.block("O"):
            v0, v1, v2 = T.axis.remap("SSR", [i0, i1, i2])
            with T.init():
                O[v0, v1] = T.float32(0)
            O[v0, v1] = O[v0, v1] + T.Cast("float32", P[v0, v2]) * T.Cast("float32", V[v2, v1])
# CHECK: T.thread_binding({{[0-9]+}}, thread="threadIdx.y"
# CHECK: T.barrier_init(barriers[4], 1)
# CHECK: T.evaluate(T.barrier())
# CHECK-NOT: T.barrier()
# CHECK: T.uniform(threadIdx_y)
# CHECK: if threadIdx_x == 0:
# CHECK-NEXT: T.barrier_expect(barriers[4],
# CHECK-NEXT: T.copy_box(Q
# CHECK: T.barrier_wait(barriers[{{.*}} + 2]
# CHECK-NEXT: T.barrier_expect(
# CHECK-NEXT: T.copy_box(K
# CHECK-NEXT: T.copy_box(V
# CHECK: else:
# CHECK-NEXT: T.barrier_wait(barriers[4], 0)
# CHECK: T.barrier_wait(
# Sums begin with the first product.
# CHECK: T.uniform(
# CHECK: T.product_fence(S
# CHECK-NEXT: T.warpgroup_product({{.*}}, Q_shared[{{.*}}, K_shared[{{.*}}, 0))
# CHECK-NEXT: T.warpgroup_product({{.*}}, 1))
# CHECK: T.product_commit()
# CHECK-NEXT: T.product_wait(0,
# CHECK: exp2(
# CHECK-NOT: O_part
# CHECK: T.fragment(
# CHECK: T.product_fence(O_sum
# CHECK-NEXT: T.warpgroup_product(O_sum{{.*}}, V_shared[
# CHECK: T.product_wait(0,
# CHECK: T.barrier_arrive(
# ASM: .maxntid 32, {{[59]}}
# ASM: cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier
# ASM-NOT: mma.sync
# The scores of 128 keys, by both operands' addresses.
# ASM: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{.*}}, 0, 1, 1, 0, 0;
# ASM: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{.*}}, 1, 1, 1, 0, 0;
# ASM: ex2.approx.ftz.f32
# ASM: cvt.rn.f16x2.f32
# The results of 128 columns, by four registers and an address of rows across.
# ASM: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{.*}}, {%r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}}, %rd{{[0-9]+}}, 1, 1, 1, 1;
# TRACE: tilefarm.warpgroup_stages
# TRACE: ann_key="tilefarm.warp_matrix", ann_val="wgmma"
# TRACE: ann_key="tilefarm.warp_matrix", ann_val="wgmma"

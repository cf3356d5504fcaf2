# RUN: --target cuda:sm_80 --stage asm
# Vectors of 16 bytes from and to global memory, copies past the registers.
@T.prim_func
def main(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64, 128), "float32")):
    A_shared = T.alloc_buffer((64, 128), scope="shared")
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for j in T.thread_binding(32, thread="threadIdx.x"):
            for k in T.serial(32, annotations={"tilefarm.shared_stages": 3}):
                for a in T.thread_binding(32, thread="threadIdx.x"):
                    for v in T.vectorized(4):
                        with T.block("A_shared"):
                            vi = T.axis.spatial(64, i * 32 + k)
                            va = T.axis.spatial(128, a * 4 + v)
                            A_shared[vi, va] = A[vi, va]
                for v in T.vectorized(4):
                    with T.block("B"):
                        vi = T.axis.spatial(64, i * 32 + k)
                        vj = T.axis.spatial(128, j * 4 + v)
                        B[vi, vj] = A_shared[vi, (vj + 4) % 128]
# CHECK: .target sm_80
# CHECK: .visible .entry tilefarm_main_kernel0
# CHECK: .maxntid 32, 1, 1
# CHECK-DAG: cp.async.cg.shared.global
# CHECK-DAG: cp.async.commit_group
# CHECK-DAG: cp.async.wait_group 1
# CHECK-DAG: bar.sync
# CHECK-DAG: st.global.v4.f32

# RUN: --target cuda:sm_80 --stage threads --function main
# RUN: --target cuda:sm_80 --stage threads --function part_is_used | --check-prefix=KEPT
# RUN: --target cuda:sm_80 --stage threads --function factor_changes | --check-prefix=KEPT
# RUN: --target cuda:sm_80 --stage threads --function other_place | --check-prefix=KEPT
# RUN: --target cuda:sm_80 --stage threads --function sum_is_read | --check-prefix=KEPT
# The part of a sum that is scaled before is added to it term by term, if nothing
# can tell.
@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((32, 4, 8), "float32"), F: T.Buffer((32, 4), "float32"), C: T.Buffer((32, 4), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        S = T.alloc_buffer((32, 4), "float32", scope="local")
        P = T.alloc_buffer((32, 4), "float32", scope="local")
        G = T.alloc_buffer((32, 4), "float32", scope="local")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for i in range(4):
                with T.block("S_init"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    S[vt, vi] = T.float32(0)
            for k0 in range(2):
                for i in range(4):
                    with T.block("G"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        G[vt, vi] = F[vt, vi] * T.float32(0.5)
                for i in range(4):
                    with T.block("P_init"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        P[vt, vi] = T.float32(0)
                for i, k in T.grid(4, 4):
                    with T.block("P"):
                        vt = T.axis.spatial(32, t)
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.spatial(8, k0 * 4 + k)
                        P[vt, vi] = P[vt, vi] + X[vt, vi, vk]
                for i in range(4):
                    with T.block("S"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        S[vt, vi] = S[vt, vi] * G[vt, vi] + P[vt, vi]
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = S[vt, vi]

    @T.prim_func
    def part_is_used(X: T.Buffer((32, 4, 8), "float32"), F: T.Buffer((32, 4), "float32"), C: T.Buffer((32, 4), "float32")):
        T.func_attr({"global_symbol": "part_is_used", "tir.noalias": True})
        S = T.alloc_buffer((32, 4), "float32", scope="local")
        P = T.alloc_buffer((32, 4), "float32", scope="local")
        G = T.alloc_buffer((32, 4), "float32", scope="local")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for i in range(4):
                with T.block("S_init"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    S[vt, vi] = T.float32(0)
            for k0 in range(2):
                for i in range(4):
                    with T.block("G"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        G[vt, vi] = F[vt, vi] * T.float32(0.5)
                for i in range(4):
                    with T.block("P_init"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        P[vt, vi] = T.float32(0)
                for i, k in T.grid(4, 4):
                    with T.block("P"):
                        vt = T.axis.spatial(32, t)
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.spatial(8, k0 * 4 + k)
                        P[vt, vi] = P[vt, vi] + X[vt, vi, vk]
                for i in range(4):
                    with T.block("G2"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        G[vt, vi] = P[vt, vi]
                for i in range(4):
                    with T.block("S"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        S[vt, vi] = S[vt, vi] * G[vt, vi] + P[vt, vi]
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = S[vt, vi]

    @T.prim_func
    def factor_changes(X: T.Buffer((32, 4, 8), "float32"), F: T.Buffer((32, 4), "float32"), C: T.Buffer((32, 4), "float32")):
        T.func_attr({"global_symbol": "factor_changes", "tir.noalias": True})
        S = T.alloc_buffer((32, 4), "float32", scope="local")
        P = T.alloc_buffer((32, 4), "float32", scope="local")
        G = T.alloc_buffer((32, 4), "float32", scope="local")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for i in range(4):
                with T.block("S_init"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    S[vt, vi] = T.float32(0)
            for k0 in range(2):
                for i in range(4):
                    with T.block("G"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        G[vt, vi] = F[vt, vi] * T.float32(0.5)
                for i in range(4):
                    with T.block("P_init"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        P[vt, vi] = T.float32(0)
                for i, k in T.grid(4, 4):
                    with T.block("P"):
                        vt = T.axis.spatial(32, t)
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.spatial(8, k0 * 4 + k)
                        P[vt, vi] = P[vt, vi] + X[vt, vi, vk]
                for i in range(4):
                    with T.block("G2"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        G[vt, vi] = G[vt, vi] + T.float32(1)
                for i in range(4):
                    with T.block("S"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        S[vt, vi] = S[vt, vi] * G[vt, vi] + P[vt, vi]
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = S[vt, vi]

    @T.prim_func
    def other_place(X: T.Buffer((32, 4, 8), "float32"), F: T.Buffer((32, 4), "float32"), C: T.Buffer((32, 4), "float32")):
        T.func_attr({"global_symbol": "other_place", "tir.noalias": True})
        S = T.alloc_buffer((32, 4), "float32", scope="local")
        P = T.alloc_buffer((32, 4), "float32", scope="local")
        G = T.alloc_buffer((32, 4), "float32", scope="local")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for i in range(4):
                with T.block("S_init"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    S[vt, vi] = T.float32(0)
            for k0 in range(2):
                for i in range(4):
                    with T.block("G"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        G[vt, vi] = F[vt, vi] * T.float32(0.5)
                for i in range(4):
                    with T.block("P_init"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        P[vt, vi] = T.float32(0)
                for i, k in T.grid(4, 4):
                    with T.block("P"):
                        vt = T.axis.spatial(32, t)
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.spatial(8, k0 * 4 + k)
                        P[vt, vi] = P[vt, vi] + X[vt, vi, vk]
                for i in range(4):
                    with T.block("S"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        S[vt, vi] = S[vt, vi] * G[vt, vi] + P[vt, 3 - vi]
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = S[vt, vi]

    @T.prim_func
    def sum_is_read(X: T.Buffer((32, 4, 8), "float32"), F: T.Buffer((32, 4), "float32"), C: T.Buffer((32, 4), "float32")):
        T.func_attr({"global_symbol": "sum_is_read", "tir.noalias": True})
        S = T.alloc_buffer((32, 4), "float32", scope="local")
        P = T.alloc_buffer((32, 4), "float32", scope="local")
        G = T.alloc_buffer((32, 4), "float32", scope="local")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for i in range(4):
                with T.block("S_init"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    S[vt, vi] = T.float32(0)
            for k0 in range(2):
                for i in range(4):
                    with T.block("G"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        G[vt, vi] = F[vt, vi] * T.float32(0.5)
                for i in range(4):
                    with T.block("P_init"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        P[vt, vi] = T.float32(0)
                for i, k in T.grid(4, 4):
                    with T.block("P"):
                        vt = T.axis.spatial(32, t)
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.spatial(8, k0 * 4 + k)
                        P[vt, vi] = P[vt, vi] + X[vt, vi, vk]
                for i in range(4):
                    with T.block("C0"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        C[vt, vi] = S[vt, vi]
                for i in range(4):
                    with T.block("S"):
                        vt, vi = T.axis.remap("SS", [t, i])
                        S[vt, vi] = S[vt, vi] * G[vt, vi] + P[vt, vi]
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = S[vt, vi]
# CHECK: for k0 in range(2):
# CHECK-NOT: P
# CHECK: S[{{.*}}] = S[{{.*}}] * G[{{.*}}]
# CHECK-NEXT: for i, k in T.grid(4, 4):
# CHECK-NEXT: S[{{.*}}] = S[{{.*}}] + X[
# CHECK-NEXT: for i in range(4):
# CHECK-NEXT: C[
# KEPT: "local") as P
# KEPT: P[{{.*}}] = P[{{.*}}] + X[
# KEPT: S[{{.*}}] = S[{{.*}}] * G[{{.*}}] + P[

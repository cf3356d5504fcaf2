# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(p15: T.Buffer((1, 128), "float32"), p16: T.Buffer((64, 128), "float32"), T_matmul_NT: T.Buffer((1, 64), "float32")):
        T.func_attr({"layout_free_buffers": [1], "tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        T_matmul_NT_rf_local = T.sblock_alloc_buffer((128, 1, 64), scope="local")
        T_matmul_NT_rf_local_1 = T.sblock_alloc_buffer((32, 1, 64), scope="local")
        p16_local = T.sblock_alloc_buffer((64, 128), scope="local")
        p15_shared = T.sblock_alloc_buffer((1, 128), scope="shared")
        for u_fused_ax0_fused_fused_0 in T.thread_binding(4, thread="blockIdx.x"):
            for u_fused_ax0_fused_fused_1 in T.thread_binding(16, thread="threadIdx.y"):
                for ax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0 in T.thread_binding(32, thread="threadIdx.x"):
                    for ax0 in range(1):
                        for ax1_0 in T.serial(1, annotations={"pragma_unroll_explicit": 256, "pragma_vectorize": 1}):
                            for ax1_1 in T.thread_binding(16, thread="threadIdx.y"):
                                for ax1_2 in T.thread_binding(32, thread="threadIdx.x"):
                                    for ax1_3 in T.vectorized(1):
                                        with T.sblock("p15_shared"):
                                            v0 = T.axis.spatial(1, ax0)
                                            v1 = T.axis.spatial(128, ax1_0 * 512 + ax1_1 * 32 + ax1_2 + ax1_3)
                                            T.where((ax1_0 * 16 + ax1_1) * 32 + ax1_2 + ax1_3 < 128)
                                            T.reads(p15[v0, v1])
                                            T.writes(p15_shared[v0, v1])
                                            p15_shared[v0, v1] = p15[v0, v1]
                    for u_fused_ax0_fused_fused_2_init in range(1):
                        for ax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_1_init in T.vectorized(4):
                            with T.sblock("T_matmul_NT_rf_init"):
                                vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused = T.axis.spatial(128, ax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0 * 4 + ax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_1_init)
                                v0 = T.axis.spatial(64, u_fused_ax0_fused_fused_0 * 16 + u_fused_ax0_fused_fused_1 + u_fused_ax0_fused_fused_2_init)
                                T.reads()
                                T.writes(T_matmul_NT_rf_local[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused, 0, v0])
                                T_matmul_NT_rf_local[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused, 0, v0] = T.float32(0.0)
                    for ax1_fused_u_fused_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        for ax0_ax1_fused_0 in range(4):
                            for ax0_ax1_fused_1 in T.vectorized(1):
                                with T.sblock("p16_local"):
                                    v0 = T.axis.spatial(64, u_fused_ax0_fused_fused_0 * 16 + u_fused_ax0_fused_fused_1)
                                    v1 = T.axis.spatial(128, ax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0 * 4 + ax0_ax1_fused_0 + ax0_ax1_fused_1)
                                    T.reads(p16[v0, v1])
                                    T.writes(p16_local[v0, v1])
                                    p16_local[v0, v1] = p16[v0, v1]
                        for u_fused_ax0_fused_fused_2, ax1_fused_u_fused_2 in T.grid(1, 1):
                            for ax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_1 in T.vectorized(4):
                                with T.sblock("T_matmul_NT_rf_update"):
                                    vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused = T.axis.spatial(128, ax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0 * 4 + ax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_1)
                                    v0 = T.axis.spatial(64, u_fused_ax0_fused_fused_0 * 16 + u_fused_ax0_fused_fused_1 + u_fused_ax0_fused_fused_2)
                                    vax1_fused_u_fused_2, vax1_fused_u_fused_0 = T.axis.remap("RR", [ax1_fused_u_fused_2, ax1_fused_u_fused_0])
                                    T.reads(T_matmul_NT_rf_local[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused, 0, v0], p15_shared[0, vax1_fused_u_fused_0 * 128 + vax1_fused_u_fused_2 * 4 + vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused], p16_local[v0, vax1_fused_u_fused_0 * 128 + vax1_fused_u_fused_2 * 4 + vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused])
                                    T.writes(T_matmul_NT_rf_local[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused, 0, v0])
                                    T_matmul_NT_rf_local[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused, 0, v0] = T_matmul_NT_rf_local[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused, 0, v0] + p15_shared[0, vax1_fused_u_fused_0 * 128 + vax1_fused_u_fused_2 * 4 + vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused] * p16_local[v0, vax1_fused_u_fused_0 * 128 + vax1_fused_u_fused_2 * 4 + vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused]
            for ax2_fused_0_ax2_fused_1_fused in T.thread_binding(16, thread="threadIdx.y"):
                for ax0 in T.thread_binding(32, thread="threadIdx.x"):
                    for ax2_fused_2_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        for ax2_fused_2_1 in T.vectorized(1):
                            with T.sblock("T_matmul_NT_rf_init"):
                                vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0 = T.axis.spatial(32, ax0)
                                v0 = T.axis.spatial(64, u_fused_ax0_fused_fused_0 * 16 + ax2_fused_0_ax2_fused_1_fused + ax2_fused_2_0 + ax2_fused_2_1)
                                T.reads()
                                T.writes(T_matmul_NT_rf_local_1[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0, 0, v0])
                                T_matmul_NT_rf_local_1[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0, 0, v0] = T.float32(0.0)
                            for ax1 in range(4):
                                with T.sblock("T_matmul_NT_rf_update"):
                                    vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0, vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_1 = T.axis.remap("SR", [ax0, ax1])
                                    v0 = T.axis.spatial(64, u_fused_ax0_fused_fused_0 * 16 + ax2_fused_0_ax2_fused_1_fused + ax2_fused_2_0 + ax2_fused_2_1)
                                    T.reads(T_matmul_NT_rf_local_1[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0, 0, v0], T_matmul_NT_rf_local[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0 * 4 + vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_1, 0, v0])
                                    T.writes(T_matmul_NT_rf_local_1[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0, 0, v0])
                                    T_matmul_NT_rf_local_1[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0, 0, v0] = T_matmul_NT_rf_local_1[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0, 0, v0] + T_matmul_NT_rf_local[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0 * 4 + vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_1, 0, v0]
            for ax1_fused_2 in range(1):
                for ax1_fused_0_ax1_fused_1_fused in T.thread_binding(16, thread="threadIdx.y"):
                    for ax0 in T.thread_binding(32, thread="threadIdx.x"):
                        with T.sblock("T_matmul_NT"):
                            vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0 = T.axis.reduce(32, ax0)
                            v0 = T.axis.spatial(64, u_fused_ax0_fused_fused_0 * 16 + ax1_fused_0_ax1_fused_1_fused + ax1_fused_2)
                            T.reads(T_matmul_NT_rf_local_1[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0, 0, v0])
                            T.writes(T_matmul_NT[0, v0])
                            with T.init():
                                T_matmul_NT[0, v0] = T.float32(0.0)
                            T_matmul_NT[0, v0] = T_matmul_NT[0, v0] + T_matmul_NT_rf_local_1[vax1_fused_u_fused_1_ax1_fused_u_fused_3_fused_0, 0, v0]
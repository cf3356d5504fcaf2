# RUN: --target x86-64:znver4,cores=1 --stage asm
# A tile of 14 by 2 vectors, with k unrolled by 2: LLVM's scheduler moves so many
# loads ahead that most of the tile goes through the stack in every iteration. In
# the order of the program six of its values do.
# CHECK-LABEL: tilefarm_main_packed:
# CHECK: # %rc_0
# CHECK-NOT: {{[0-9][0-9][0-9][0-9]\(%rsp\)}}
# CHECK-COUNT-56: vfmadd
# CHECK: jne
# CHECK-LABEL: tilefarm_main_pack:
@I.ir_module
class Module:
    @T.prim_func
    def main(in0: T.Buffer((1, 14, 14, 96), "float32"), in1: T.Buffer((576, 96, 1, 1), "float32"), in2: T.Buffer((576,), "float32"), T_clip: T.Buffer((1, 14, 14, 576), "float32")):
        T.func_attr({"layout_free_buffers": [1, 2], "tilefarm.results_are_read": 1, "tir.noalias": True})
        conv2d_nchw = T.alloc_buffer((1, 14, 14, 576), "float32")
        in1_global = T.alloc_buffer((18, 1, 1, 96, 32), "float32")
        for ax0_0, ax2, ax3, ax1 in T.grid(18, 1, 1, 96):
            for ax0_1 in T.vectorized(32):
                with T.block("in1_global"):
                    v0 = T.axis.spatial(576, ax0_0 * 32 + ax0_1)
                    v1, v2, v3 = T.axis.remap("SSS", [ax1, ax2, ax3])
                    T.block_attr({"tilefarm.prepack": 1})
                    in1_global[v0 // 32, 0, 0, v1, v0 % 32] = in1[v0, v1, v2, v3]
        for i0_0 in T.serial(1, annotations={"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 1}):
            for i2_0, i3_0, i1_0, i0_1, i2_1, i3_1, i1_1 in T.grid(2, 1, 6, 1, 7, 1, 3):
                for r0_0, r1_0 in T.grid(1, 1):
                    for i0_2_init, i2_2_init, i3_2_init, i1_2_init, i0_3_init, i2_3_init in T.grid(1, 1, 1, 1, 1, 1):
                        for i3_3_init in T.unroll(14):
                            for i1_3_init in T.vectorized(32):
                                with T.block("conv2d_nchw_init"):
                                    v_i0 = T.axis.spatial(1, i0_0 + i0_1 + i0_2_init + i0_3_init)
                                    v_i2 = T.axis.spatial(14, i2_0 * 7 + i2_1 + i2_2_init + i2_3_init)
                                    v_i3 = T.axis.spatial(14, i3_0 * 14 + i3_1 * 14 + i3_2_init * 14 + i3_3_init)
                                    v_i1 = T.axis.spatial(576, i1_0 * 96 + i1_1 * 32 + i1_2_init * 32 + i1_3_init)
                                    T.block_attr({"meta_schedule.tiling_structure": "SSRSRS"})
                                    conv2d_nchw[v_i0, v_i2, v_i3, v_i1] = T.float32(0.0)
                    for rc_0, i0_2, i2_2, i3_2, i1_2, r0_1, r1_1, rc_1, i0_3, i2_3 in T.grid(48, 1, 1, 1, 1, 1, 1, 2, 1, 1):
                        for i3_3 in T.unroll(14):
                            for i1_3 in T.vectorized(32):
                                with T.block("conv2d_nchw_update"):
                                    v_i0 = T.axis.spatial(1, i0_0 + i0_1 + i0_2 + i0_3)
                                    v_i2 = T.axis.spatial(14, i2_0 * 7 + i2_1 + i2_2 + i2_3)
                                    v_i3 = T.axis.spatial(14, i3_0 * 14 + i3_1 * 14 + i3_2 * 14 + i3_3)
                                    v_i1 = T.axis.spatial(576, i1_0 * 96 + i1_1 * 32 + i1_2 * 32 + i1_3)
                                    v_r0 = T.axis.reduce(1, r0_0 + r0_1)
                                    v_r1 = T.axis.reduce(1, r1_0 + r1_1)
                                    v_rc = T.axis.reduce(96, rc_0 * 2 + rc_1)
                                    T.block_attr({"meta_schedule.tiling_structure": "SSRSRS"})
                                    conv2d_nchw[v_i0, v_i2, v_i3, v_i1] = conv2d_nchw[v_i0, v_i2, v_i3, v_i1] + in0[v_i0, v_i2 + v_r0, v_i3 + v_r1, v_rc] * in1_global[v_i1 // 32, 0, 0, v_rc, v_i1 % 32]
                for ax0, ax1, ax2 in T.grid(1, 1, 14):
                    for ax3 in T.vectorized(32):
                        with T.block("T_clip"):
                            v_i0 = T.axis.spatial(1, ax0)
                            v_i2 = T.axis.spatial(14, i2_0 * 7 + i2_1 + ax1)
                            v_i3 = T.axis.spatial(14, ax2)
                            v_i1 = T.axis.spatial(576, i1_0 * 96 + i1_1 * 32 + ax3)
                            T_clip[v_i0, v_i2, v_i3, v_i1] = T.min(T.max(conv2d_nchw[v_i0, v_i2, v_i3, v_i1] + in2[v_i1], T.float32(0.0)), T.float32(6.0))

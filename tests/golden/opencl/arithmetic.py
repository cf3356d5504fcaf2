# RUN: --target opencl:generic --stage asm
# Signed sums wrap, quotients round down, conversions saturate, 16-bit floats
# are rounded by whole numbers.
@T.prim_func
def main(A: T.Buffer((64,), "int32"), F: T.Buffer((64,), "float32"), B: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int8"), D: T.Buffer((64,), "bfloat16")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(64, t)
            B[v] = T.floordiv(A[v] + T.int32(1), A[63 - v])
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("C"):
            v = T.axis.spatial(64, t)
            C[v] = T.Cast("int8", T.max(F[v], T.float32(0.5)))
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("D"):
            v = T.axis.spatial(64, t)
            D[v] = T.Cast("bfloat16", F[v])
# CHECK: static int tf_floordiv_int(int a, int b) {
# CHECK: static ushort tf_to_bfloat(float x) {
# CHECK: B_[threadIdx_x_] = tf_floordiv_int((int)((uint)A_[threadIdx_x_] + (uint)1), A_[
# CHECK: convert_char_sat(tf_max_float(F_[threadIdx_x_], 0.5f))
# CHECK: D_[threadIdx_x_] = tf_to_bfloat(F_[threadIdx_x_]);

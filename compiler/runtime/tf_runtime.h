/* The functions that generated code calls. Freestanding C: platform.h declares
 * every function of the C library that the runtime uses; no other header is
 * included.
 *
 * All names start with tf_rt_ and become hidden when a kernel is built, so
 * that two artifacts in one process never share state. */
#ifndef TILEFARM_COMPILER_RUNTIME_TF_RUNTIME_H_
#define TILEFARM_COMPILER_RUNTIME_TF_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

/* Iterations [begin, end) of a parallel loop. Non-zero means failure. */
typedef int32_t (*tf_rt_body)(int64_t begin, int64_t end, void* context);

/* Runs iterations [0, n) on up to `cores` threads of the artifact's pool,
 * caller included, in chunks that are handed out as threads become free.
 * Returns when all are done: 0, or a failing body's status. Where the pool is
 * busy with another caller's loop, or cannot be made, the caller runs it all.
 */
int32_t tf_rt_parallel_for(tf_rt_body body, void* context, int64_t n,
                           int32_t cores);
/* Ends and joins the pool's threads; run when the artifact is unloaded. */
void tf_rt_parallel_shutdown(void);

/* Asks the system, once, for the use of the matrix unit in this process and the
 * threads it makes from then on. Non-zero where there is none to use. */
int32_t tf_rt_enable_tiles(void);

/* A matrix product, `batch` times: C[m, n] = A[m, k] B[k, n], row-major, either
 * operand transposed in memory. The rest is as in ir/library_call.h. */
struct tf_rt_gemm {
  int64_t m, n, k, lda, ldb, ldc, transpose_a, transpose_b;
  int64_t batch, batch_a, batch_b, batch_c;
};
/* By a library, on up to `cores` threads. Non-zero where it refuses. */
int32_t tf_rt_onednn_sgemm(const struct tf_rt_gemm* form, const float* a,
                           const float* b, float* c, int32_t cores);
int32_t tf_rt_openblas_sgemm(const struct tf_rt_gemm* form, const float* a,
                             const float* b, float* c, int32_t cores);

/* At least `bytes` bytes, 64-byte aligned, exclusively the caller's until it
 * is released. Contents are undefined. Null if there is no memory. */
void* tf_rt_workspace_acquire(int64_t bytes);
/* Keeps the block for a later acquire. Null is allowed. */
void tf_rt_workspace_release(void* block);
/* Frees the kept blocks; runs when the artifact is unloaded. */
void tf_rt_workspace_shutdown(void);

#endif /* TILEFARM_COMPILER_RUNTIME_TF_RUNTIME_H_ */

/* Matrix products by OpenBLAS. Its threads belong to the process: their number
 * is set while calls of this artifact run and restored after the last of
 * them. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"
#include "compiler/runtime/threads.h"

enum { kRowMajor = 101, kPlain = 111, kTransposed = 112 };

void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n,
                 int k, float alpha, const float* a, int lda, const float* b,
                 int ldb, float beta, float* c, int ldc);
int openblas_get_num_threads(void);
void openblas_set_num_threads(int threads);

static _Atomic(int) locked;
static int running, threads_before;

static void Lock(void) {
  while (__c11_atomic_exchange(&locked, 1, __ATOMIC_ACQUIRE)) TF_PAUSE();
}
static void Unlock(void) { __c11_atomic_store(&locked, 0, __ATOMIC_RELEASE); }

int32_t tf_rt_openblas_sgemm(const struct tf_rt_gemm* form, const float* a,
                             const float* b, float* c, int32_t cores) {
  const int threads = ThreadsFor(cores);
  Lock();
  if (running++ == 0) {
    threads_before = openblas_get_num_threads();
    if (threads_before != threads) openblas_set_num_threads(threads);
  }
  Unlock();
  for (int64_t i = 0; i < form->batch; ++i) {
    cblas_sgemm(kRowMajor, form->transpose_a ? kTransposed : kPlain,
                form->transpose_b ? kTransposed : kPlain, (int)form->m,
                (int)form->n, (int)form->k, 1.0f, a + i * form->batch_a,
                (int)form->lda, b + i * form->batch_b, (int)form->ldb, 0.0f,
                c + i * form->batch_c, (int)form->ldc);
  }
  Lock();
  if (--running == 0 && threads_before != threads) {
    openblas_set_num_threads(threads_before);
  }
  Unlock();
  return 0;
}

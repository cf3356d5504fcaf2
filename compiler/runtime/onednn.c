/* Matrix products by oneDNN, as built for OpenMP, whose number of threads is
 * the calling thread's own. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"
#include "compiler/runtime/threads.h"

int dnnl_sgemm(char transpose_a, char transpose_b, int64_t m, int64_t n,
               int64_t k, float alpha, const float* a, int64_t lda,
               const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);

int32_t tf_rt_onednn_sgemm(const struct tf_rt_gemm* form, const float* a,
                           const float* b, float* c, int32_t cores) {
  const int threads = ThreadsFor(cores), before = omp_get_max_threads();
  int status = 0;
  if (before != threads) omp_set_num_threads(threads);
  for (int64_t i = 0; i < form->batch && status == 0; ++i) {
    status =
        dnnl_sgemm(form->transpose_a ? 'T' : 'N', form->transpose_b ? 'T' : 'N',
                   form->m, form->n, form->k, 1.0f, a + i * form->batch_a,
                   form->lda, b + i * form->batch_b, form->ldb, 0.0f,
                   c + i * form->batch_c, form->ldc);
  }
  if (before != threads) omp_set_num_threads(before);
  return status == 0 ? 0 : 1;
}

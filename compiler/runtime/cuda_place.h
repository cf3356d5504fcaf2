/* Contexts of CUDA, and what belongs to their devices. */
#ifndef TILEFARM_COMPILER_RUNTIME_CUDA_PLACE_H_
#define TILEFARM_COMPILER_RUNTIME_CUDA_PLACE_H_

#include <stdint.h>

#include "compiler/runtime/cuda_driver.h"

/* The context of this call: the current one, otherwise the primary context of
 * device TILEFARM_CUDA_DEVICE, which the artifact retains. It is made current;
 * `*pushed` if it must be popped. 0, or the result of tf_rt_gpu_fail.
 * Thread-safe. */
int32_t tf_rt_cuda_enter(const struct tf_cuda_driver* driver, void** context,
                         int32_t* pushed);
/* Tells a context from a destroyed one that had the same address. 0 if the
 * driver has no numbers. */
unsigned long long tf_rt_cuda_context_id(const struct tf_cuda_driver* driver,
                                         void* context);
/* Whether the driver and the current context's device have pools of memory. */
int32_t tf_rt_cuda_has_pools(const struct tf_cuda_driver* driver);
/* A pool of memory of the current context's device. Null if there are none. */
void* tf_rt_cuda_make_pool(const struct tf_cuda_driver* driver);

/* Whether the artifact retains a primary context. */
int32_t tf_rt_cuda_has_primary(void);
/* Releases it. */
void tf_rt_cuda_place_shutdown(const struct tf_cuda_driver* driver);

#endif /* TILEFARM_COMPILER_RUNTIME_CUDA_PLACE_H_ */

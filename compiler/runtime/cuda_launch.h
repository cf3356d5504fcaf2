/* Launches of kernels of which each may begin while the one before it ends. */
#ifndef TILEFARM_COMPILER_RUNTIME_CUDA_LAUNCH_H_
#define TILEFARM_COMPILER_RUNTIME_CUDA_LAUNCH_H_

#include <stdint.h>

#include "compiler/runtime/cuda_driver.h"
#include "compiler/runtime/gpu.h"

/* A kernel that overlaps (tf_gpu_kernel::overlaps) waits for the one before it
 * by itself, before it touches memory, and lets the next one start then. So the
 * GPU need not finish one to prepare the next, which takes half of what a
 * launch costs ("programmatic dependent launch" in the CUDA C++ Programming
 * Guide).
 *
 * Only kernels that follow another one of this artifact are launched so, since
 * what others enqueued need not keep to that. Where the driver cannot, they are
 * launched one after another, as with TILEFARM_CUDA_OVERLAP=0. */

/* Begins a sequence of calls of this thread, which enqueue to one stream. */
void tf_rt_cuda_begin_sequence(void);
void tf_rt_cuda_end_sequence(void);
/* What is enqueued next follows something else than a kernel. */
void tf_rt_cuda_interrupt_sequence(void);

/* 0, or the driver's error. `follows`: the last thing that was enqueued is a
 * kernel of the same call; false: it is if the sequence says so. */
int32_t tf_rt_cuda_launch(const struct tf_cuda_driver* driver, void* function,
                          const struct tf_gpu_kernel* kernel, void* stream,
                          void** arguments, int32_t follows);

/* Whether kernels overlap; and sets it. */
int32_t tf_rt_cuda_overlaps(const struct tf_cuda_driver* driver);
void tf_rt_cuda_set_overlaps(int32_t overlaps);

/* At the end of the artifact. */
void tf_rt_cuda_launch_shutdown(void);

#endif /* TILEFARM_COMPILER_RUNTIME_CUDA_LAUNCH_H_ */

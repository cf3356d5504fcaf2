/* Where the kernels of a call run. */
#ifndef TILEFARM_COMPILER_RUNTIME_OPENCL_PLACE_H_
#define TILEFARM_COMPILER_RUNTIME_OPENCL_PLACE_H_

#include <stdint.h>

#include "compiler/runtime/opencl_driver.h"

struct tf_opencl_place {
  void* queue; /* runs in order */
  void* context;
  void* device;
};

/* The place of a caller's queue. Null: that of the artifact's own queue, which
 * the first such call makes (gpu.h says on which device), and which is for
 * calls that wait. 0, or the result of tf_rt_gpu_fail. Thread-safe. */
int32_t tf_rt_opencl_place(const struct tf_opencl_driver* driver, void* queue,
                           int32_t wait, struct tf_opencl_place* place);
/* Releases the artifact's own queue. */
void tf_rt_opencl_place_shutdown(const struct tf_opencl_driver* driver);

#endif /* TILEFARM_COMPILER_RUNTIME_OPENCL_PLACE_H_ */

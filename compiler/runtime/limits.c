/* The limits that a model instance sets for the kernels it runs. They are
 * values of the calling thread: kernels start their loops there, and the pool's
 * threads start none while the instance has the pool. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"
#include "compiler/runtime/thread_key.h"

static struct ThreadKey limits;

const struct tf_rt_limits* tf_rt_limits(void) { return ThreadValue(&limits); }

int32_t tf_rt_limits_prepare(void) { return MakeThreadKey(&limits, NULL); }

int32_t tf_rt_set_limits(const struct tf_rt_limits* value) {
  return SetThreadValue(&limits, value);
}

void tf_rt_limits_shutdown(void) { DeleteThreadKey(&limits); }

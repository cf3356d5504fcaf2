/* The last error of each thread in the functions of GPUs. */
#include "compiler/runtime/gpu.h"
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"
#include "compiler/runtime/thread_key.h"

static const char kNoMemory[] = "no memory for the text of an error";
static const char kNoError[] = "no error";

/* The text of a thread that had an error, which owns it. */
static struct ThreadKey last_text;
/* Some thread had an error and no room for its text. */
static _Atomic(int32_t) lost_text;

static char* Text(void) {
  char* text = ThreadValue(&last_text);
  if (text != NULL) return text;
  if (MakeThreadKey(&last_text, free) != 0) return NULL;
  text = aligned_alloc(64, TF_RT_ERROR_BYTES);
  if (text == NULL) return NULL;
  if (SetThreadValue(&last_text, text) == 0) return text;
  free(text);
  return NULL;
}

const char* tf_rt_gpu_error(void) {
  const char* text = ThreadValue(&last_text);
  if (text != NULL) return text;
  return __c11_atomic_load(&lost_text, __ATOMIC_RELAXED) ? kNoMemory : kNoError;
}

int32_t tf_rt_gpu_fail(int32_t status, const char* format, ...) {
  char* text = Text();
  if (text == NULL) {
    __c11_atomic_store(&lost_text, 1, __ATOMIC_RELAXED);
    return status;
  }
  __builtin_va_list arguments;
  __builtin_va_start(arguments, format);
  vsnprintf(text, TF_RT_ERROR_BYTES, format, arguments);
  __builtin_va_end(arguments);
  return status;
}

void tf_rt_gpu_error_shutdown(void) {
  free(ThreadValue(&last_text));
  DeleteThreadKey(&last_text);
}

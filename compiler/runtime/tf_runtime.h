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
 * caller included, in chunks that are handed out as threads become free; on
 * fewer threads if the caller has limits. Returns when all are done: 0, or a
 * failing body's status. If the pool is busy with another caller's loop, or
 * cannot be made, the caller runs all iterations.
 */
int32_t tf_rt_parallel_for(tf_rt_body body, void* context, int64_t n,
                           int32_t cores);
/* Ends and joins the pool's threads; run when the artifact is unloaded. */
void tf_rt_parallel_shutdown(void);

/* Limits of the loops and library calls that a thread starts. */
struct tf_rt_limits {
  int32_t threads; /* at most, the caller included; 0: no limit */
  int32_t spin_us; /* of idle threads after a loop; 0: the default */
};
/* The calling thread's limits; null if it has none. */
const struct tf_rt_limits* tf_rt_limits(void);
/* Must succeed before tf_rt_set_limits is called. Non-zero if the process has
 * no more thread-specific keys. */
int32_t tf_rt_limits_prepare(void);
/* Sets (null: removes) the calling thread's limits, which must outlive their
 * use. Non-zero if there is no memory. */
int32_t tf_rt_set_limits(const struct tf_rt_limits* limits);
/* Runs when the artifact is unloaded. */
void tf_rt_limits_shutdown(void);

/* Requests, once, the use of the matrix unit in this process and in threads
 * that it creates afterwards. Non-zero if there is no matrix unit to use. */
int32_t tf_rt_enable_tiles(void);

/* A matrix product, `batch` times: C[m, n] = A[m, k] B[k, n], row-major, either
 * operand transposed in memory. The rest is as in ir/library_call.h. */
struct tf_rt_gemm {
  int64_t m, n, k, lda, ldb, ldc, transpose_a, transpose_b;
  int64_t batch, batch_a, batch_b, batch_c;
};
/* Calls the library's kernel on up to `cores` threads. Non-zero if it fails. */
int32_t tf_rt_onednn_sgemm(const struct tf_rt_gemm* form, const float* a,
                           const float* b, float* c, int32_t cores);
int32_t tf_rt_openblas_sgemm(const struct tf_rt_gemm* form, const float* a,
                             const float* b, float* c, int32_t cores);

/* At least `bytes` bytes, 64-byte aligned, owned by the caller until it
 * releases them. Contents are undefined. Null if there is no memory. */
void* tf_rt_workspace_acquire(int64_t bytes);
/* Keeps the block for a later acquire. Null is allowed. */
void tf_rt_workspace_release(void* block);
/* Frees the kept blocks; runs when the artifact is unloaded. */
void tf_rt_workspace_shutdown(void);

enum { TF_RT_ERROR_BYTES = 4608 }; /* room for the longest path, and more */
/* Weights outside of the artifact. */
struct tf_rt_weights_file {
  const char* name; /* beside the library */
  int64_t bytes;    /* without the header */
  uint8_t digest[32];
};
/* Maps the file at `path` (null: beside the library). Null if that fails; then
 * `error`, of TF_RT_ERROR_BYTES, says why. Each success needs a close. */
const char* tf_rt_weights_open(const struct tf_rt_weights_file* file,
                               const char* path, char* error);
void tf_rt_weights_close(const struct tf_rt_weights_file* file);

/* tf_tensor_info of the model's header. */
struct tf_rt_tensor_info {
  const char* name;
  int32_t dtype;
  int32_t rank;
  const int64_t* shape;
};
/* The kernels for one combination of the inputs' shapes. */
struct tf_rt_variant {
  /* Runs them in order. Non-zero if one failed. Null for a model on a device.
   */
  int32_t (*steps)(const void* const* inputs, void* const* outputs, char* arena,
                   const char* weights);
  /* Enqueues them; `operands` are the device's (gpu.h: tf_gpu_model). Null for
   * a model on the host. */
  int32_t (*device_steps)(void* stream, void* const* operands);
  /* One for each tensor. */
  const int64_t* input_bytes;
  const int64_t* output_bytes;
  /* One for each tensor; null where the rank is 0. */
  const int64_t* const* input_shapes;
  const int64_t* const* output_shapes;
};
struct tf_rt_model;
/* What finds the variant of a model with several. Null if there is none for the
 * shapes; then `error`, of TF_RT_ERROR_BYTES or null, says why. */
typedef const struct tf_rt_variant* (*tf_rt_choose)(
    const struct tf_rt_model* model, const int64_t* const* input_shapes,
    char* error);
const struct tf_rt_variant* tf_rt_choose_variant(
    const struct tf_rt_model* model, const int64_t* const* input_shapes,
    char* error);
/* A device where a model's values are: cuda_model.c or opencl_model.c. The
 * functions return 0, or non-zero if kernel_error() describes an error. */
struct tf_rt_device {
  /* `weights`: on the host, needed during the call. `stream`: that of runs that
   * wait, and of the context; null: the device's file has its own. */
  int32_t (*create)(const struct tf_rt_model* model, const char* weights,
                    void* stream, void** instance);
  /* wait != 0: inputs and outputs are as a caller of tf_rt_model_run gives
   * them. Otherwise they are the device's, and all is enqueued on `stream`. */
  int32_t (*run)(void* instance, const struct tf_rt_variant* variant,
                 const void* const* inputs, void* const* outputs, void* stream,
                 int32_t wait);
  void (*destroy)(void* instance);
  const struct tf_gpu_model* model;
};
/* A compiled model, constant in its artifact. */
struct tf_rt_model {
  const struct tf_rt_variant* variants;
  int32_t variant_count;
  int32_t input_count, output_count;
  const struct tf_rt_tensor_info* inputs;
  const struct tf_rt_tensor_info* outputs;
  /* Null if all dimensions are fixed: there is one variant. Otherwise
   * tf_rt_choose_variant, which only such an artifact has, and the sizes of the
   * open dimensions for people ("N=1; N=8"). */
  tf_rt_choose choose;
  const char* sizes;
  const char* weights; /* null if there are none inside */
  int64_t arena_bytes; /* a multiple of 64 */
  /* Null if the weights are inside. Otherwise the two functions above, which
   * only such an artifact has. */
  const struct tf_rt_weights_file* file;
  const char* (*open)(const struct tf_rt_weights_file* file, const char* path,
                      char* error);
  void (*close)(const struct tf_rt_weights_file* file);
  const struct tf_rt_device* device; /* null: the host */
  /* What a kernel that failed says; null: it failed for want of memory. */
  const char* (*kernel_error)(void);
};
/* tf_model_options of the model's header. */
struct tf_rt_model_options {
  size_t size;
  const char* weights;
  int32_t threads;
  int32_t spin_us;
};
/* 0, or non-zero if tf_rt_model_error() describes an error. */
int32_t tf_rt_model_create(const struct tf_rt_model* model,
                           const struct tf_rt_model_options* options,
                           void** result);
/* The same for a model on a device: struct tf_rt_device has the stream's
 * meaning. */
int32_t tf_rt_model_create_on(const struct tf_rt_model* model,
                              const struct tf_rt_model_options* options,
                              void* stream, void** result);
int32_t tf_rt_model_run(void* instance, const void* const* inputs,
                        void* const* outputs);
/* Enqueues the model, which is on a device, on the caller's stream or queue.
 * Inputs and outputs are the device's. */
int32_t tf_rt_model_run_on(void* instance, void* stream,
                           const void* const* inputs, void* const* outputs);
/* Writes the outputs' shapes if `output_shapes` is not null, and runs the model
 * if `outputs` is not null. */
int32_t tf_rt_model_run_shaped(void* instance, const void* const* inputs,
                               const int64_t* const* input_shapes,
                               void* const* outputs,
                               int64_t* const* output_shapes);
void tf_rt_model_destroy(void* instance);
/* The last error of this thread; never null. */
const char* tf_rt_model_error(void);
/* Runs when the artifact is unloaded. */
void tf_rt_model_shutdown(void);

#endif /* TILEFARM_COMPILER_RUNTIME_TF_RUNTIME_H_ */

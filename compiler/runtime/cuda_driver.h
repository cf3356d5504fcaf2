/* The part of NVIDIA's driver library that is called (CUDA Driver API). */
#ifndef TILEFARM_COMPILER_RUNTIME_CUDA_DRIVER_H_
#define TILEFARM_COMPILER_RUNTIME_CUDA_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

/* CUdeviceptr, an address. */
typedef uint64_t tf_device_pointer;

struct tf_cuda_pool_properties { /* CUmemPoolProps */
  int32_t allocation_type;
  int32_t handle_types;
  int32_t location_type;
  int32_t location;
  void* security_attributes;
  size_t most_bytes;
  uint8_t reserved[56];
};

struct tf_cuda_launch_attribute { /* CUlaunchAttribute */
  int32_t id;
  char padding[4];
  int32_t value; /* of a union of 64 bytes */
  char rest[60];
};
struct tf_cuda_launch_config { /* CUlaunchConfig */
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  void* stream;
  struct tf_cuda_launch_attribute* attributes;
  uint32_t attribute_count;
};

/* Functions return 0 or the number of an error. */
struct tf_cuda_driver {
  int32_t (*init)(uint32_t flags);
  int32_t (*current)(void** context);
  int32_t (*push)(void* context);
  int32_t (*pop)(void** context);
  int32_t (*current_device)(int32_t* device);
  int32_t (*synchronize_context)(void);
  int32_t (*device)(int32_t* device, int32_t number);
  int32_t (*attribute)(int32_t* value, int32_t attribute, int32_t device);
  int32_t (*retain_primary)(void** context, int32_t device);
  int32_t (*release_primary)(int32_t device);
  int32_t (*load)(void** module, const void* image, uint32_t options,
                  const int32_t* option, void** option_values);
  int32_t (*unload)(void* module);
  int32_t (*function)(void** function, void* module, const char* name);
  int32_t (*set_attribute)(void* function, int32_t attribute, int32_t value);
  int32_t (*pointer_attribute)(void* value, int32_t attribute,
                               tf_device_pointer pointer);
  int32_t (*allocate)(tf_device_pointer* pointer, size_t bytes);
  int32_t (*release)(tf_device_pointer pointer);
  int32_t (*copy_to_device)(tf_device_pointer to, const void* from,
                            size_t bytes);
  int32_t (*copy_to_host)(void* to, tf_device_pointer from, size_t bytes);
  int32_t (*launch)(void* function, uint32_t grid_x, uint32_t grid_y,
                    uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                    uint32_t block_z, uint32_t shared_bytes, void* stream,
                    void** arguments, void** extra);
  int32_t (*synchronize)(void* stream);
  int32_t (*make_stream)(void** stream, uint32_t flags);
  int32_t (*destroy_stream)(void* stream);
  /* Between device and host, whichever each address is of. */
  int32_t (*copy)(tf_device_pointer to, tf_device_pointer from, size_t bytes,
                  void* stream);
  /* Null in old drivers. */
  int32_t (*error_text)(int32_t error, const char** text);
  int32_t (*context_id)(void* context, unsigned long long* id);
  int32_t (*fill)(tf_device_pointer to, uint8_t byte, size_t bytes,
                  void* stream);
  int32_t (*make_pool)(void** pool,
                       const struct tf_cuda_pool_properties* properties);
  int32_t (*destroy_pool)(void* pool);
  int32_t (*set_pool)(void* pool, int32_t attribute, void* value);
  int32_t (*allocate_async)(tf_device_pointer* pointer, size_t bytes,
                            void* pool, void* stream);
  int32_t (*release_async)(tf_device_pointer pointer, void* stream);
  /* From here on, what the stream gets is recorded and not run. */
  int32_t (*begin_capture)(void* stream, int32_t mode);
  int32_t (*end_capture)(void* stream, void** graph);
  int32_t (*instantiate)(void** executable, void* graph,
                         unsigned long long flags);
  int32_t (*launch_graph)(void* executable, void* stream);
  int32_t (*destroy_graph)(void* graph);
  int32_t (*destroy_executable)(void* executable);
  int32_t (*launch_as)(const struct tf_cuda_launch_config* config,
                       void* function, void** arguments, void** extra);
  /* `strides` in bytes, but for the contiguous dimension. */
  int32_t (*encode_map)(void* map, int32_t element_type, uint32_t dims,
                        tf_device_pointer memory, const uint64_t* sizes,
                        const uint64_t* strides, const uint32_t* box,
                        const uint32_t* element_strides, int32_t interleave,
                        int32_t swizzle, int32_t l2_promotion, int32_t fill);
  /* `lower`, `upper`: of the spatial dimensions, the width first. */
  int32_t (*encode_windows)(void* map, int32_t element_type, uint32_t dims,
                            tf_device_pointer memory, const uint64_t* sizes,
                            const uint64_t* strides, const int32_t* lower,
                            const int32_t* upper, uint32_t channels,
                            uint32_t pixels, const uint32_t* element_strides,
                            int32_t interleave, int32_t swizzle,
                            int32_t l2_promotion, int32_t fill);
};

struct tf_cuda_map { /* CUtensorMap */
  _Alignas(64) char bytes[128];
};

enum {
  TF_CUDA_INVALID_VALUE = 1, /* an error */
  TF_CUDA_DEVICE_MEMORY_POOLS_SUPPORTED = 115,
  TF_CUDA_FUNCTION_MAX_DYNAMIC_SHARED = 8,
  TF_CUDA_JIT_ERROR_LOG = 5,
  TF_CUDA_JIT_ERROR_LOG_BYTES = 6,
  TF_CUDA_POINTER_MEMORY_TYPE = 2,
  TF_CUDA_POINTER_IS_MANAGED = 8,
  TF_CUDA_MEMORY_TYPE_HOST = 1,
  TF_CUDA_POOL_RELEASE_THRESHOLD = 4,
  TF_CUDA_POOL_PINNED = 1,
  TF_CUDA_POOL_ON_DEVICE = 1,
  TF_CUDA_MAP_NO_INTERLEAVE = 0,
  TF_CUDA_MAP_SWIZZLE_128_BYTES = 3,
  TF_CUDA_MAP_PROMOTE_256_BYTES = 3,
  TF_CUDA_MAP_FILL_ZEROS = 0,
  TF_CUDA_LAUNCH_PROGRAMMATIC_SERIALIZATION = 6,
  TF_CUDA_STREAM_NON_BLOCKING = 1,
  TF_CUDA_CAPTURE_RELAXED = 2, /* other threads may allocate meanwhile */
  TF_CUDA_SHARED_BYTES_BY_DEFAULT = 48 << 10,
};

/* The library, opened at first use. Null if that fails; then `status` has the
 * result of tf_rt_gpu_fail. TILEFARM_CUDA_DRIVER names another file than
 * libcuda.so.1. Thread-safe. */
const struct tf_cuda_driver* tf_rt_cuda_driver(int32_t* status);
/* Sets the error of a driver's function; the result is `error`. */
int32_t tf_rt_cuda_fail(const struct tf_cuda_driver* driver, const char* call,
                        const char* object, int32_t error, const char* log);
/* Closes it. */
void tf_rt_cuda_driver_shutdown(void);

#endif /* TILEFARM_COMPILER_RUNTIME_CUDA_DRIVER_H_ */

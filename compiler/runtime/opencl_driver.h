/* The part of OpenCL 1.2 that opencl.c and opencl_model.c call, declared by
 * hand. */
#ifndef TILEFARM_COMPILER_RUNTIME_OPENCL_DRIVER_H_
#define TILEFARM_COMPILER_RUNTIME_OPENCL_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

/* Functions return 0 or the number of an error, which is negative. Those that
 * make an object return it, and store that number. All handles are pointers. */
struct tf_opencl_driver {
  int32_t (*platforms)(uint32_t entries, void** platforms, uint32_t* count);
  int32_t (*devices)(void* platform, uint64_t type, uint32_t entries,
                     void** devices, uint32_t* count);
  int32_t (*device_info)(void* device, uint32_t what, size_t bytes, void* value,
                         size_t* value_bytes);
  void* (*make_context)(const intptr_t* properties, uint32_t devices,
                        void* const* device,
                        void (*notify)(const char* text, const void* more,
                                       size_t more_bytes, void* data),
                        void* data, int32_t* error);
  int32_t (*retain_context)(void* context);
  int32_t (*release_context)(void* context);
  void* (*make_queue)(void* context, void* device, uint64_t properties,
                      int32_t* error);
  int32_t (*queue_info)(void* queue, uint32_t what, size_t bytes, void* value,
                        size_t* value_bytes);
  int32_t (*release_queue)(void* queue);
  void* (*make_program)(void* context, uint32_t texts, const char** text,
                        const size_t* text_bytes, int32_t* error);
  int32_t (*build)(void* program, uint32_t devices, void* const* device,
                   const char* options,
                   void (*notify)(void* program, void* data), void* data);
  int32_t (*build_info)(void* program, void* device, uint32_t what,
                        size_t bytes, void* value, size_t* value_bytes);
  int32_t (*release_program)(void* program);
  void* (*make_kernel)(void* program, const char* name, int32_t* error);
  int32_t (*kernel_info)(void* kernel, void* device, uint32_t what,
                         size_t bytes, void* value, size_t* value_bytes);
  int32_t (*set_argument)(void* kernel, uint32_t number, size_t bytes,
                          const void* value);
  int32_t (*release_kernel)(void* kernel);
  void* (*make_buffer)(void* context, uint64_t flags, size_t bytes, void* host,
                       int32_t* error);
  /* Parts need a multiple of the device's alignment as their origin. */
  void* (*make_part)(void* buffer, uint64_t flags, uint32_t type,
                     const void* region, int32_t* error);
  int32_t (*release_buffer)(void* buffer);
  int32_t (*read)(void* queue, void* buffer, uint32_t blocks, size_t offset,
                  size_t bytes, void* to, uint32_t events, void* const* event,
                  void** made);
  int32_t (*write)(void* queue, void* buffer, uint32_t blocks, size_t offset,
                   size_t bytes, const void* from, uint32_t events,
                   void* const* event, void** made);
  int32_t (*copy)(void* queue, void* from, void* to, size_t from_offset,
                  size_t to_offset, size_t bytes, uint32_t events,
                  void* const* event, void** made);
  int32_t (*fill)(void* queue, void* buffer, const void* pattern,
                  size_t pattern_bytes, size_t offset, size_t bytes,
                  uint32_t events, void* const* event, void** made);
  int32_t (*launch)(void* queue, void* kernel, uint32_t dims,
                    const size_t* offset, const size_t* global,
                    const size_t* local, uint32_t events, void* const* event,
                    void** made);
  int32_t (*flush)(void* queue);
  int32_t (*finish)(void* queue);
  int32_t (*event_info)(void* event, uint32_t what, size_t bytes, void* value,
                        size_t* value_bytes);
  int32_t (*release_event)(void* event);
};

struct tf_cl_region { /* cl_buffer_region */
  size_t origin, bytes;
};

enum {
  /* Errors. */
  TF_CL_DEVICE_NOT_FOUND = -1,
  TF_CL_OUT_OF_RESOURCES = -5,
  TF_CL_INVALID_WORK_GROUP_SIZE = -54,
  /* What functions tell. */
  TF_CL_DEVICE_LOCAL_MEM_SIZE = 0x1023, /* uint64_t */
  TF_CL_QUEUE_CONTEXT = 0x1090,
  TF_CL_QUEUE_DEVICE = 0x1091,
  TF_CL_QUEUE_PROPERTIES = 0x1093, /* uint64_t */
  TF_CL_PROGRAM_BUILD_LOG = 0x1183,
  TF_CL_KERNEL_WORK_GROUP_SIZE = 0x11b0,         /* size_t */
  TF_CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11d3, /* int32_t */
  /* Flags. */
  TF_CL_CONTEXT_PLATFORM = 0x1084,
  TF_CL_MEM_READ_WRITE = 1,
  TF_CL_BUFFER_CREATE_TYPE_REGION = 0x1220,
  TF_CL_QUEUE_OUT_OF_ORDER = 1,
};
#define TF_CL_DEVICE_TYPE_ALL 0xffffffffu

/* The library, opened at first use. Null if that fails; then `status` has the
 * result of tf_rt_gpu_fail. TILEFARM_OPENCL_DRIVER names another file than
 * libOpenCL.so.1. Thread-safe. */
const struct tf_opencl_driver* tf_rt_opencl_driver(int32_t* status);
/* Sets the error of a function of OpenCL; the result is `-error`. `object` and
 * `detail` may be null. */
int32_t tf_rt_opencl_fail(const char* call, const char* object, int32_t error,
                          const char* detail);
/* Whether the library can be called. Not while the process exits: drivers may
 * have ended by then, since exit() runs their handlers before the destructors
 * of shared objects. */
int32_t tf_rt_opencl_driver_is_alive(void);
/* Closes it. */
void tf_rt_opencl_driver_shutdown(void);

#endif /* TILEFARM_COMPILER_RUNTIME_OPENCL_DRIVER_H_ */

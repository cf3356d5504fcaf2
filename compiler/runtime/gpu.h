/* Kernels of GPUs: the data that codegen/host_stub.h generates, the functions
 * that the stub calls (cuda.c, opencl.c, or sim.c for simulated targets), and
 * those that kernels of a simulated target call. Also included by C++. */
#ifndef TILEFARM_COMPILER_RUNTIME_GPU_H_
#define TILEFARM_COMPILER_RUNTIME_GPU_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The public part of what sim.c knows of a thread. */
struct tf_sim_thread {
  /* Coordinates: x, y, z. block[0] is the cluster's; clusters of one block have
   * the block's. */
  uint32_t thread[3], block[3];
  void* shared;  /* the block's shared memory, aligned to 1024 bytes */
  uint32_t rank; /* the block's number in its cluster */
};

enum {
  TF_GPU_MAP_DIMS = 5,
  TF_GPU_MAP_SPATIAL = 3,
  TF_GPU_MAP_ROW_BYTES = 128
};

/* A dense tensor of which kernels copy boxes, with rows of 128 bytes that are
 * swizzled in shared memory; or windows (ir/tensor_box.h), whose dimensions are
 * channels, width, height, depth and images, and the last one's box extent the
 * number of pixels. */
struct tf_gpu_tensor_map {
  int32_t buffer;       /* as tf_gpu_kernel::arguments */
  int32_t element_type; /* CUtensorMapDataType */
  uint32_t element_bytes;
  uint32_t dims;
  uint64_t sizes[TF_GPU_MAP_DIMS]; /* the contiguous dimension first */
  uint32_t box[TF_GPU_MAP_DIMS];
  /* Of windows, by width, height and depth; 0: boxes. */
  uint32_t spatial;
  int32_t lower[TF_GPU_MAP_SPATIAL], upper[TF_GPU_MAP_SPATIAL];
  uint32_t steps[TF_GPU_MAP_SPATIAL];
};

/* One launch. */
struct tf_gpu_kernel {
  const char* name; /* in the image */
  /* Simulated targets only, else null: runs one thread. After the buffers
   * there are tf_sim_tensor_map*. */
  void (*simulated)(const struct tf_sim_thread* thread, void* const* buffers);
  uint32_t grid[3], block[3];
  /* Dynamic shared memory. OpenCL: what the source declares as local memory. */
  uint32_t shared_bytes;
  uint32_t buffers; /* number of arguments, each a pointer */
  /* The arguments: numbers of buffers, parameters first, then workspaces. */
  const int32_t* arguments;
  /* Arguments after the buffers. */
  uint32_t maps;
  const struct tf_gpu_tensor_map* map;
  /* It waits for the kernel before it by itself (cuda_launch.h). */
  uint32_t overlaps;
  /* Blocks of a cluster, along x: they run at the same time and read each
   * other's shared memory. A divisor of grid[0]; 1: no clusters. */
  uint32_t cluster;
};

struct tf_gpu_image {
  const void* bytes; /* cubin, or text with its final 0: PTX, OpenCL C */
  uint64_t size;     /* the final 0 included */
};

/* What an artifact has loaded, a list by context; all zero at first. */
struct tf_gpu_state {
  struct tf_gpu_module* modules; /* each of cuda.c and opencl.c has its own */
  struct tf_gpu_state* next; /* the artifact's other state that has modules */
  int32_t listed;
};

enum {
  TF_GPU_READ = 1,
  TF_GPU_WRITTEN = 2, /* every byte; 3 if the kernels leave some as they are */
  /* Most parameters and workspaces of a function. */
  TF_GPU_MAX_BUFFERS = 512,
  TF_GPU_MAX_MAPS = 16, /* of a kernel */
  TF_GPU_WARP_LANES = 32,
  TF_GPU_MAX_THREADS = 1024,
  TF_GPU_MAX_CLUSTER = 8, /* blocks */
};

/* An exported function: launches in order. */
struct tf_gpu_function {
  struct tf_gpu_state* state;       /* shared by all functions of the image */
  const struct tf_gpu_image* image; /* null if simulated */
  int32_t parameters;
  const int64_t* parameter_bytes;
  const uint8_t* parameter_access; /* TF_GPU_READ | TF_GPU_WRITTEN */
  int32_t workspaces;              /* intermediates between kernels */
  const int64_t* workspace_bytes;
  int32_t kernels;
  const struct tf_gpu_kernel* kernel;
};

/* The results of the functions below: 0, the driver's number of the error
 * (positive), or one of these. OpenCL's own numbers are negative and are
 * returned negated: 5 for CL_OUT_OF_RESOURCES (-5). tf_rt_gpu_error() has the
 * text. */
enum {
  TF_GPU_FAILED = -1,    /* wrong arguments, no memory on the host */
  TF_GPU_NO_DRIVER = -2, /* no usable driver library */
  TF_GPU_FAULT = -3,     /* a simulated kernel is wrong */
};

/* What a step of a model reads or writes: a part of the instance's memory or of
 * the weights. */
struct tf_gpu_operand {
  int64_t offset; /* a multiple of TF_GPU_MODEL_ALIGNMENT */
  int64_t bytes;
  int64_t in_weights;
};
/* A model whose values are in a device's memory (codegen/model_object.h). */
struct tf_gpu_model {
  int64_t
      memory_bytes; /* of an instance: intermediate values, inputs, outputs */
  int64_t weights_bytes;
  const int64_t* input_offsets; /* in the memory */
  const int64_t* output_offsets;
  int64_t operand_count;
  const struct tf_gpu_operand* operands;
};
/* What every device allows for parts of a buffer: OpenCL's devices ask for up
 * to 4096 bits. */
enum { TF_GPU_MODEL_ALIGNMENT = 512 };

/* Runs the function's kernels on the current context's device; without a
 * context in the primary context of device TILEFARM_CUDA_DEVICE (0).
 *
 * wait != 0: returns when the results are there. Each parameter may be device
 * or host memory; the latter is copied, so `stream` must be one that waits for
 * the legacy default stream, such as null. wait == 0: enqueues the kernels on
 * `stream`; parameters are device memory.
 *
 * The first call in a context loads the code. Thread-safe. */
int32_t tf_rt_cuda_run(const struct tf_gpu_function* function,
                       void* const* parameters, void* stream, int32_t wait);
/* Unloads all; run when the artifact is unloaded. */
void tf_rt_cuda_shutdown(void);

/* Runs the function's kernels on the device of `queue`, a cl_command_queue that
 * runs in order.
 *
 * wait != 0: returns when the results are there. Parameters are host memory,
 * which is copied. Without a queue the artifact makes one, and a context, on
 * device TILEFARM_OPENCL_DEVICE (0), counted over all devices of all platforms
 * in the loader's order. wait == 0: enqueues the kernels; parameters are
 * cl_mem.
 *
 * The first call in a context and device builds the program. The artifact
 * retains the context until it is unloaded, and keeps workspace for each queue.
 * Thread-safe. */
int32_t tf_rt_opencl_run(const struct tf_gpu_function* function,
                         void* const* parameters, void* queue, int32_t wait);
/* Releases all; run when the artifact is unloaded. While the process exits it
 * calls nothing of OpenCL, because drivers have ended by then. */
void tf_rt_opencl_shutdown(void);

/* Copies within the device's memory: CUDA's pointers, or cl_mem. Enqueued. */
int32_t tf_rt_cuda_copy(void* stream, void* to, void* from, int64_t bytes);
int32_t tf_rt_opencl_copy(void* queue, void* to, void* from, int64_t bytes);

/* Runs the kernels in the calling thread; parameters are host memory, `stream`
 * and `wait` are ignored. Thread-safe. */
int32_t tf_rt_sim_run(const struct tf_gpu_function* function,
                      void* const* parameters, void* stream, int32_t wait);
/* Runs when the artifact is unloaded. */
void tf_rt_sim_shutdown(void);

/* The last error of this thread in this artifact; never null. */
const char* tf_rt_gpu_error(void);
/* Sets it; the result is `status`. */
int32_t tf_rt_gpu_fail(int32_t status, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
/* Called by the shutdown functions. */
void tf_rt_gpu_error_shutdown(void);

/* What simulated kernels call. A misuse ends the kernel with an error. `site`
 * numbers the call in the kernel's code. */

/* Waits until all threads of the block call it, at the same site. */
void tf_rt_sim_barrier(const struct tf_sim_thread* thread, int32_t site);
/* The `value` of lane `source_lane` % 32 of the thread's warp. All threads of
 * its group of `width` lanes, which is a power of two, call it at the same site
 * and read lanes of the group; other groups of the warp need not. */
uint32_t tf_rt_sim_shuffle(const struct tf_sim_thread* thread, uint32_t value,
                           uint32_t source_lane, uint32_t width, int32_t site);
/* What lanes of a warp have of matrices (ir/matrix_units.h). All lanes call
 * these at the same site. */
enum tf_sim_element {
  TF_SIM_F16,
  TF_SIM_BF16,
  TF_SIM_TF32,
  TF_SIM_S8,
  TF_SIM_U8,
};
/* Loads a fragment of 1, 2 or 4 matrices, PTX's ldmatrix: `row` of lane l is
 * row l % 8 of matrix l / 8, 16 bytes of shared memory, aligned to them. */
void tf_rt_sim_load_matrix(const struct tf_sim_thread* thread,
                           uint32_t* fragment, const void* row,
                           uint32_t matrices, uint32_t transposed,
                           int32_t site);
/* Adds to four sums, of type float or int32_t, PTX's mma of 16 rows, 8 columns
 * and 32 bytes of terms: `a` has four registers, `b` two. */
void tf_rt_sim_warp_product(const struct tf_sim_thread* thread,
                            uint32_t a_element, uint32_t b_element,
                            const uint32_t* a, const uint32_t* b, void* sums,
                            int32_t site);
/* Starts a copy to shared memory of `valid_bytes` bytes, then zeros up to
 * `bytes`. It lands in the tf_rt_sim_wait that waits for it: `from` is read
 * then, and the target has bytes 0xff until then. */
void tf_rt_sim_copy_async(const struct tf_sim_thread* thread, void* shared_to,
                          const void* from, uint32_t bytes,
                          uint32_t valid_bytes);
/* Ends the thread's current group of copies. */
void tf_rt_sim_commit(const struct tf_sim_thread* thread);
/* Lands the thread's groups but the last `groups_left`; if negative, also the
 * copies that are in no group yet. */
void tf_rt_sim_wait(const struct tf_sim_thread* thread, int32_t groups_left);
/* Checks an access to shared memory: it must be inside, meet no copy that has
 * not landed, and no access of another thread since the last barrier if one of
 * the two is a write. */
void tf_rt_sim_access(const struct tf_sim_thread* thread, const void* address,
                      uint32_t bytes, int32_t is_write);

/* sim_cluster.c */

/* Waits until all threads of all blocks of the cluster call it, at the same
 * site. It is also a barrier of each block. */
void tf_rt_sim_cluster_barrier(const struct tf_sim_thread* thread,
                               int32_t site);
/* The same place in the shared memory of block `rank` of the cluster. */
void* tf_rt_sim_cluster_address(const struct tf_sim_thread* thread,
                                const void* shared, uint32_t rank);
/* Checks a load from an address in the memory of any block of the cluster: it
 * must be inside and meet no copy that has not landed, and the other block must
 * not write there between the same two barriers of the cluster. The block must
 * be there: it reaches a barrier of the cluster before the load and another one
 * after it. Of the thread's own block: as tf_rt_sim_access. */
void tf_rt_sim_cluster_read(const struct tf_sim_thread* thread,
                            const void* address, uint32_t bytes);

/* sim_warpgroup.c: ir/machine_op.h says what these do. Barriers are in shared
 * memory, tiles too. */
struct tf_sim_tensor_map {
  const struct tf_gpu_tensor_map* map;
  char* memory;
};
enum tf_sim_operand {
  TF_SIM_BFLOAT16,
  TF_SIM_FLOAT16,
  TF_SIM_INT8,
  TF_SIM_UINT8,
};
void tf_rt_sim_barrier_init(const struct tf_sim_thread* thread, void* barrier,
                            uint32_t arrivals);
void tf_rt_sim_barrier_expect(const struct tf_sim_thread* thread, void* barrier,
                              uint32_t bytes);
void tf_rt_sim_barrier_arrive(const struct tf_sim_thread* thread, void* barrier,
                              uint32_t condition);
void tf_rt_sim_barrier_wait(const struct tf_sim_thread* thread, void* barrier,
                            uint32_t parity);
/* The box lands later, at any time; until then its target has bytes 0xff. */
void tf_rt_sim_copy_box(const struct tf_sim_thread* thread, void* to,
                        const struct tf_sim_tensor_map* map, void* barrier,
                        int32_t x0, int32_t x1, int32_t x2, int32_t x3,
                        int32_t x4);
/* Likewise of windows; the coordinates are those of the first window's first
 * element, in the order of the map's dimensions, and o0.. a place in the
 * window.
 */
void tf_rt_sim_copy_windows(const struct tf_sim_thread* thread, void* to,
                            const struct tf_sim_tensor_map* map, void* barrier,
                            int32_t x0, int32_t x1, int32_t x2, int32_t x3,
                            int32_t x4, uint16_t o0, uint16_t o1, uint16_t o2);
/* The box is read and written in the wait, at the latest. */
void tf_rt_sim_store_box(const struct tf_sim_thread* thread, const void* from,
                         const struct tf_sim_tensor_map* map, int32_t x0,
                         int32_t x1, int32_t x2, int32_t x3, int32_t x4);
void tf_rt_sim_box_store_commit(const struct tf_sim_thread* thread);
void tf_rt_sim_box_store_wait(const struct tf_sim_thread* thread,
                              uint32_t groups);
void tf_rt_sim_warpgroup_barrier(const struct tf_sim_thread* thread,
                                 uint32_t number);
/* The thread's part. Operands must stay as they are until the wait. */
void tf_rt_sim_product(const struct tf_sim_thread* thread, int32_t operand,
                       uint32_t columns, const void* a, uint32_t a_tile_bytes,
                       const void* b, uint32_t b_tile_bytes, void* sums);
/* Likewise, with four registers of 16-bit floats as the first operand. */
void tf_rt_sim_product_of_registers(const struct tf_sim_thread* thread,
                                    int32_t operand, uint32_t columns,
                                    const uint32_t* a, const void* b,
                                    uint32_t b_tile_bytes, void* sums);
void tf_rt_sim_product_commit(const struct tf_sim_thread* thread);
void tf_rt_sim_product_wait(const struct tf_sim_thread* thread,
                            uint32_t groups);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TILEFARM_COMPILER_RUNTIME_GPU_H_ */

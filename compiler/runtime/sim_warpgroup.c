/* Simulated matrix units of warpgroups and copies of boxes. A box lands between
 * two turns of the fibers; the products of a thread are computed at once, and
 * their operands must be unchanged when the thread has waited for them. */
#include "compiler/runtime/sim_state.h"

enum {
  kLanes = 32,
  kWarpgroup = 128,
  kRows = 64,       /* of a product */
  kDepthBytes = 32, /* of an operand, along the common dimension */
  kTileAlignment = 1024,
  kMostProducts = 64, /* of a thread that were not waited for */
};

/* A copy that has not landed. */
struct Box {
  struct Box* next;
  const struct tf_sim_tensor_map* map;
  char* to;
  void* barrier;
  int64_t origin[TF_GPU_MAP_DIMS];
  uint32_t group;                       /* of stores */
  uint16_t offsets[TF_GPU_MAP_SPATIAL]; /* of windows */
};

struct Operand {
  const char* base;
  uint32_t tile_bytes; /* 0: rows run along depth */
  uint32_t places;     /* rows or columns of the product */
};

struct Products {
  uint32_t count;
  uint32_t group; /* the number of committed groups */
  struct {
    struct Operand operands[2];
    uint32_t element_bytes;
    uint64_t checksum;
    uint32_t group;
  } product[kMostProducts];
};

static void Fault(struct Fiber* fiber, const char* what) {
  struct Launch* launch = fiber->launch;
  launch->status =
      tf_rt_gpu_fail(TF_GPU_FAULT, "%s, block (%u,%u,%u), thread %u: %s",
                     TF_PLACE(launch), fiber->number, what);
  Abandon(fiber);
}

static void BeginLooking(struct Launch* launch) {
  ++launch->looking;
  ++launch->progress;
}

static void EndLooking(struct Launch* launch) {
  --launch->looking;
  ++launch->progress;
}

static void CheckShared(struct Fiber* fiber, const void* address,
                        uint64_t bytes, uint32_t alignment) {
  const struct Launch* launch = fiber->launch;
  const uint64_t at = (uintptr_t)address - (uintptr_t)launch->shared;
  if (at > launch->kernel->shared_bytes ||
      bytes > launch->kernel->shared_bytes - at || at % alignment != 0) {
    Fault(fiber, "a tile or a barrier outside of shared memory, or unaligned");
  }
}

/* Arrival barriers --------------------------------------------------------- */

/* In the 8 bytes of the barrier. */
struct Arrivals {
  uint16_t count, pending;
  int32_t bytes_and_parity; /* 2 * the bytes that are missing + parity */
};

static struct Arrivals* FindBarrier(struct Fiber* fiber, void* barrier) {
  CheckShared(fiber, barrier, 8, 8);
  struct Arrivals* arrivals = barrier;
  if (arrivals->count == 0xffff) {
    Fault(fiber, "an arrival barrier that is not initialised");
  }
  return arrivals;
}

static void Advance(struct Launch* launch, struct Arrivals* arrivals) {
  ++launch->progress;
  if (arrivals->pending != 0 || arrivals->bytes_and_parity >> 1 != 0) return;
  arrivals->pending = arrivals->count;
  arrivals->bytes_and_parity ^= 1;
}

static void Arrive(struct Fiber* fiber, void* barrier, uint32_t bytes) {
  struct Arrivals* arrivals = FindBarrier(fiber, barrier);
  if (arrivals->pending == 0) Fault(fiber, "one arrival too many at a barrier");
  arrivals->bytes_and_parity += (int32_t)(2 * bytes);
  --arrivals->pending;
  Advance(fiber->launch, arrivals);
}

void tf_rt_sim_barrier_init(const struct tf_sim_thread* thread, void* barrier,
                            uint32_t arrivals) {
  struct Fiber* fiber = FiberOf(thread);
  CheckShared(fiber, barrier, 8, 8);
  *(struct Arrivals*)barrier =
      (struct Arrivals){(uint16_t)arrivals, (uint16_t)arrivals, 0};
}

void tf_rt_sim_barrier_expect(const struct tf_sim_thread* thread, void* barrier,
                              uint32_t bytes) {
  Arrive(FiberOf(thread), barrier, bytes);
}

void tf_rt_sim_barrier_arrive(const struct tf_sim_thread* thread, void* barrier,
                              uint32_t condition) {
  if (condition) Arrive(FiberOf(thread), barrier, 0);
}

void tf_rt_sim_barrier_wait(const struct tf_sim_thread* thread, void* barrier,
                            uint32_t parity) {
  struct Fiber* fiber = FiberOf(thread);
  const struct Arrivals* arrivals = FindBarrier(fiber, barrier);
  if ((arrivals->bytes_and_parity & 1) != (int32_t)parity) return;
  BeginLooking(fiber->launch);
  while ((arrivals->bytes_and_parity & 1) == (int32_t)parity) Yield(fiber);
  EndLooking(fiber->launch);
}

/* Boxes -------------------------------------------------------------------- */

/* Where byte `offset` of a tile is. */
static uint32_t Swizzled(uint32_t offset) {
  return offset ^ (offset / TF_GPU_MAP_ROW_BYTES % 8) * 16;
}

static uint64_t BoxBytes(const struct tf_gpu_tensor_map* map) {
  uint64_t bytes = map->element_bytes;
  for (uint32_t i = 0; i < map->dims; ++i) bytes *= map->box[i];
  return bytes;
}

static void Append(struct Box** last, struct Box* box) {
  while (*last != NULL) last = &(*last)->next;
  *last = box;
}

static struct Box* NewBox(struct Fiber* fiber, struct Box contents) {
  struct Box* box = aligned_alloc(64, 128);
  _Static_assert(sizeof(struct Box) <= 128, "what is allocated");
  if (box == NULL) Fault(fiber, "no memory for copies");
  *box = contents;
  return box;
}

static void StartCopy(struct Fiber* fiber, struct Box contents) {
  const struct tf_gpu_tensor_map* map = contents.map->map;
  const uint64_t bytes = BoxBytes(map);
  CheckShared(fiber, contents.to, bytes, kTileAlignment);
  FindBarrier(fiber, contents.barrier);
  if (map->box[0] * map->element_bytes != TF_GPU_MAP_ROW_BYTES) {
    Fault(fiber, "a box whose rows are not 128 bytes long");
  }
  if (fiber->launch->cluster != NULL &&
      !tf_rt_sim_cluster_write(fiber, contents.to, (uint32_t)bytes)) {
    Abandon(fiber);
  }
  Append(&fiber->launch->boxes, NewBox(fiber, contents));
  memset(contents.to, 0xff, bytes);
  ++fiber->launch->progress;
}

void tf_rt_sim_copy_box(const struct tf_sim_thread* thread, void* to,
                        const struct tf_sim_tensor_map* map, void* barrier,
                        int32_t x0, int32_t x1, int32_t x2, int32_t x3,
                        int32_t x4) {
  StartCopy(FiberOf(thread),
            (struct Box){NULL, map, to, barrier, {x0, x1, x2, x3, x4}, 0, {0}});
}

/* The number of windows along a spatial dimension. */
static int64_t WindowCount(const struct tf_gpu_tensor_map* map, uint32_t i) {
  const int64_t length =
      (int64_t)map->sizes[i + 1] + map->upper[i] - map->lower[i];
  return (length - 1) / map->steps[i] + 1;
}

void tf_rt_sim_copy_windows(const struct tf_sim_thread* thread, void* to,
                            const struct tf_sim_tensor_map* map, void* barrier,
                            int32_t x0, int32_t x1, int32_t x2, int32_t x3,
                            int32_t x4, uint16_t o0, uint16_t o1, uint16_t o2) {
  struct Fiber* fiber = FiberOf(thread);
  const struct Box box = {NULL, map,         to, barrier, {x0, x1, x2, x3, x4},
                          0,    {o0, o1, o2}};
  for (uint32_t i = 0; i < map->map->spatial; ++i) {
    const int64_t from = box.origin[i + 1] - map->map->lower[i];
    if (from < 0 || from % map->map->steps[i] != 0 ||
        from / map->map->steps[i] >= WindowCount(map->map, i)) {
      Fault(fiber, "a copy that begins at no window");
    }
  }
  StartCopy(fiber, box);
}

/* The elements of a row begin at coordinates 1 to dims - 1. */
static void LocateRow(const struct Box* box, uint64_t row, int64_t* at) {
  const struct tf_gpu_tensor_map* map = box->map->map;
  if (map->spatial == 0) {
    for (uint32_t i = 1; i < map->dims; ++i) {
      at[i] = box->origin[i] + (int64_t)(row % map->box[i]);
      row /= map->box[i];
    }
    return;
  }
  /* The windows have numbers, whose digits are places along dimensions. */
  for (uint32_t i = 0; i < map->spatial; ++i) {
    const int64_t count = WindowCount(map, i), step = map->steps[i];
    const int64_t window =
        (box->origin[i + 1] - map->lower[i]) / step + (int64_t)row;
    at[i + 1] = window % count * step + map->lower[i] + box->offsets[i];
    row = (uint64_t)(window / count);
  }
  at[map->dims - 1] = box->origin[map->dims - 1] + (int64_t)row;
}

/* One row of the box, from the tensor or to it. */
static void CopyRow(const struct Box* box, uint64_t row, int32_t to_tensor) {
  const struct tf_gpu_tensor_map* map = box->map->map;
  uint64_t stride = map->sizes[0], offset = 0;
  int64_t first[TF_GPU_MAP_DIMS];
  LocateRow(box, row, first);
  int32_t inside = 1;
  for (uint32_t i = 1; i < map->dims; ++i) {
    inside &= first[i] >= 0 && first[i] < (int64_t)map->sizes[i];
    offset += (uint64_t)first[i] * stride;
    stride *= map->sizes[i];
  }
  for (uint32_t i = 0; i < map->box[0]; ++i) {
    const int64_t at = box->origin[0] + i;
    char* shared = box->to + Swizzled((uint32_t)row * TF_GPU_MAP_ROW_BYTES +
                                      i * map->element_bytes);
    char* element =
        box->map->memory + (offset + (uint64_t)at) * map->element_bytes;
    if (!inside || at < 0 || at >= (int64_t)map->sizes[0]) {
      if (!to_tensor) memset(shared, 0, map->element_bytes);
    } else if (to_tensor) {
      memcpy(element, shared, map->element_bytes);
    } else {
      memcpy(shared, element, map->element_bytes);
    }
  }
}

static void CopyBox(const struct Box* box, int32_t to_tensor) {
  const uint64_t bytes = BoxBytes(box->map->map);
  for (uint64_t row = 0; row * TF_GPU_MAP_ROW_BYTES < bytes; ++row) {
    CopyRow(box, row, to_tensor);
  }
}

int32_t tf_rt_sim_expects_box(const struct Launch* launch, const char* address,
                              uint32_t bytes) {
  for (const struct Box* box = launch->boxes; box != NULL; box = box->next) {
    if (address < box->to + BoxBytes(box->map->map) &&
        box->to < address + bytes) {
      return 1;
    }
  }
  return 0;
}

void tf_rt_sim_land_box(struct Launch* launch) {
  uint32_t count = 0;
  for (struct Box* box = launch->boxes; box != NULL; box = box->next) ++count;
  uint32_t skip =
      launch->seeded ? (uint32_t)(tf_rt_sim_random(launch) % count) : 0;
  struct Box** at = &launch->boxes;
  for (; skip > 0; --skip) at = &(*at)->next;
  struct Box* box = *at;
  *at = box->next;
  CopyBox(box, /*to_tensor=*/0);
  if (launch->cluster != NULL) {
    tf_rt_sim_cluster_landing(launch, box->to,
                              (uint32_t)BoxBytes(box->map->map));
  }
  struct Arrivals* arrivals = box->barrier;
  arrivals->bytes_and_parity -= (int32_t)(2 * BoxBytes(box->map->map));
  Advance(launch, arrivals);
  free(box);
}

void tf_rt_sim_drop_boxes(struct Launch* launch) {
  while (launch->boxes != NULL) {
    struct Box* box = launch->boxes;
    launch->boxes = box->next;
    free(box);
  }
}

void tf_rt_sim_store_box(const struct tf_sim_thread* thread, const void* from,
                         const struct tf_sim_tensor_map* map, int32_t x0,
                         int32_t x1, int32_t x2, int32_t x3, int32_t x4) {
  struct Fiber* fiber = FiberOf(thread);
  CheckShared(fiber, from, BoxBytes(map->map), kTileAlignment);
  const struct Box box = {NULL,
                          map,
                          (char*)(uintptr_t)from,
                          NULL,
                          {x0, x1, x2, x3, x4},
                          fiber->store_group,
                          {0}};
  Append(&fiber->stores, NewBox(fiber, box));
}

void tf_rt_sim_box_store_commit(const struct tf_sim_thread* thread) {
  ++FiberOf(thread)->store_group;
}

void tf_rt_sim_box_store_wait(const struct tf_sim_thread* thread,
                              uint32_t groups) {
  struct Fiber* fiber = FiberOf(thread);
  while (fiber->stores != NULL &&
         fiber->stores->group + groups < fiber->store_group) {
    struct Box* box = fiber->stores;
    fiber->stores = box->next;
    CopyBox(box, /*to_tensor=*/1);
    free(box);
  }
}

int32_t tf_rt_sim_drop_stores(struct Fiber* fiber) {
  const int32_t waited = fiber->stores == NULL;
  while (fiber->stores != NULL) {
    struct Box* box = fiber->stores;
    fiber->stores = box->next;
    free(box);
  }
  fiber->store_group = 0;
  return waited;
}

static void Meet(struct Fiber* fiber, struct Meeting* meeting,
                 uint32_t threads) {
  struct Launch* launch = fiber->launch;
  const uint32_t times = meeting->times;
  if (++meeting->waiting == threads) {
    meeting->waiting = 0;
    ++meeting->times;
    ++launch->progress;
    return;
  }
  BeginLooking(launch);
  while (meeting->times == times) Yield(fiber);
  EndLooking(launch);
}

void tf_rt_sim_warpgroup_barrier(const struct tf_sim_thread* thread,
                                 uint32_t number) {
  struct Fiber* fiber = FiberOf(thread);
  if (number >= TF_GPU_MAX_THREADS / kWarpgroup) {
    Fault(fiber, "a warpgroup that a block cannot have");
  }
  Meet(fiber, &fiber->launch->groups[number], kWarpgroup);
}

/* Products ----------------------------------------------------------------- */

/* Element k along depth of a place. The swizzle is of the address. */
static const char* Find(const struct Operand* operand, uint32_t place,
                        uint32_t k, uint32_t element_bytes) {
  const uint32_t row_elements = TF_GPU_MAP_ROW_BYTES / element_bytes;
  uint32_t offset = 0;
  if (operand->tile_bytes == 0) {
    offset = place * TF_GPU_MAP_ROW_BYTES + k * element_bytes;
  } else {
    offset = place / row_elements * operand->tile_bytes +
             k * TF_GPU_MAP_ROW_BYTES + place % row_elements * element_bytes;
  }
  const uintptr_t address = (uintptr_t)operand->base + offset;
  return (const char*)(address ^ address / TF_GPU_MAP_ROW_BYTES % 8 * 16);
}

static uint64_t Checksum(const struct Operand* operands,
                         uint32_t element_bytes) {
  uint64_t sum = 1469598103934665603u;
  for (int i = 0; i < 2; ++i) {
    for (uint32_t place = 0; place < operands[i].places; ++place) {
      for (uint32_t k = 0; k < kDepthBytes / element_bytes; ++k) {
        const char* element = Find(&operands[i], place, k, element_bytes);
        for (uint32_t b = 0; b < element_bytes; ++b) {
          sum = (sum ^ (uint8_t)element[b]) * 1099511628211u;
        }
      }
    }
  }
  return sum;
}

static float FloatOf(const char* element, int32_t operand) {
  uint16_t bits = 0;
  memcpy(&bits, element, 2);
  float value = 0;
  if (operand == TF_SIM_BFLOAT16) {
    const uint32_t wide = (uint32_t)bits << 16;
    memcpy(&value, &wide, 4);
    return value;
  }
  const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 0) {
    value = (float)fraction * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = sign | fraction << 13 |
                        (exponent == 31 ? 255u << 23 : (exponent + 112) << 23);
  memcpy(&value, &wide, 4);
  return value;
}

static int32_t IntOf(const char* element, int32_t operand) {
  return operand == TF_SIM_INT8 ? (int8_t)*element : (uint8_t)*element;
}

static void Note(struct Fiber* fiber, const struct Operand* operands,
                 uint32_t element_bytes) {
  if (fiber->products == NULL) {
    const size_t bytes = (sizeof(struct Products) + 63) / 64 * 64;
    fiber->products = aligned_alloc(64, bytes);
    if (fiber->products == NULL) Fault(fiber, "no memory for products");
    memset(fiber->products, 0, bytes);
  }
  struct Products* products = fiber->products;
  if (products->count == kMostProducts) {
    Fault(fiber, "too many products without a wait");
  }
  products->product[products->count].operands[0] = operands[0];
  products->product[products->count].operands[1] = operands[1];
  products->product[products->count].element_bytes = element_bytes;
  /* One thread of a warp checks for all. */
  products->product[products->count].checksum =
      fiber->number % kLanes == 0 ? Checksum(operands, element_bytes) : 0;
  products->product[products->count].group = products->group;
  ++products->count;
}

static void CheckOperand(struct Fiber* fiber, const struct Operand* operand,
                         uint32_t element_bytes) {
  for (int last = 0; last < 2; ++last) {
    CheckShared(fiber,
                Find(operand, last ? operand->places - 1 : 0,
                     last ? kDepthBytes / element_bytes - 1 : 0, element_bytes),
                element_bytes, 1);
  }
}

/* Element k of the row l / 4 + 8 * h of lane l, by the lane of its quad that
 * has it (ir/matrix_units.h). */
static const char* FindInRegisters(const struct Fiber* fiber, uint32_t h,
                                   uint32_t k, uint32_t element_bytes) {
  const uint32_t at = k * element_bytes;
  const struct Fiber* lane = fiber - fiber->number % 4 + at % 16 / 4;
  return (const char*)&lane->fragment[h + 2 * (at / 16)] + at % 4;
}

/* The thread's part of a product; operands[0].base is null if the first operand
 * is in registers. */
static void AddProduct(const struct Fiber* fiber, int32_t operand,
                       const struct Operand* operands, uint32_t element_bytes,
                       void* sums) {
  const int32_t is_float = operand <= TF_SIM_FLOAT16;
  const uint32_t depth = kDepthBytes / element_bytes;
  const uint32_t lane = fiber->number % kLanes;
  const uint32_t warp = fiber->number / kLanes % 4;
  float* float_sums = sums;
  int32_t* int_sums = sums;
  for (uint32_t h = 0; h < 2; ++h) {
    const uint32_t row = warp * 16 + lane / 4 + 8 * h;
    float row_floats[kDepthBytes];
    int32_t row_ints[kDepthBytes];
    for (uint32_t k = 0; k < depth; ++k) {
      const char* element = operands[0].base == NULL
                                ? FindInRegisters(fiber, h, k, element_bytes)
                                : Find(&operands[0], row, k, element_bytes);
      if (is_float) {
        row_floats[k] = FloatOf(element, operand);
      } else {
        row_ints[k] = IntOf(element, operand);
      }
    }
    for (uint32_t c = 0; c < operands[1].places / 8; ++c) {
      for (uint32_t q = 0; q < 2; ++q) {
        const uint32_t place = 4 * c + 2 * h + q;
        const uint32_t column = 8 * c + lane % 4 * 2 + q;
        float float_sum = 0;
        int32_t int_sum = 0;
        for (uint32_t k = 0; k < depth; ++k) {
          const char* element = Find(&operands[1], column, k, element_bytes);
          if (is_float) {
            float_sum += row_floats[k] * FloatOf(element, operand);
          } else {
            int_sum += row_ints[k] * IntOf(element, operand);
          }
        }
        if (is_float) {
          float_sums[place] += float_sum;
        } else {
          int_sums[place] =
              (int32_t)((uint32_t)int_sums[place] + (uint32_t)int_sum);
        }
      }
    }
  }
}

void tf_rt_sim_product(const struct tf_sim_thread* thread, int32_t operand,
                       uint32_t columns, const void* a, uint32_t a_tile_bytes,
                       const void* b, uint32_t b_tile_bytes, void* sums) {
  struct Fiber* fiber = FiberOf(thread);
  const uint32_t element_bytes = operand <= TF_SIM_FLOAT16 ? 2 : 1;
  const struct Operand operands[2] = {{a, a_tile_bytes, kRows},
                                      {b, b_tile_bytes, columns}};
  CheckOperand(fiber, &operands[0], element_bytes);
  CheckOperand(fiber, &operands[1], element_bytes);
  Note(fiber, operands, element_bytes);
  AddProduct(fiber, operand, operands, element_bytes, sums);
}

void tf_rt_sim_product_of_registers(const struct tf_sim_thread* thread,
                                    int32_t operand, uint32_t columns,
                                    const uint32_t* a, const void* b,
                                    uint32_t b_tile_bytes, void* sums) {
  struct Fiber* fiber = FiberOf(thread);
  const uint32_t element_bytes = 2;
  const struct Operand operands[2] = {{NULL, 0, 0}, {b, b_tile_bytes, columns}};
  CheckOperand(fiber, &operands[1], element_bytes);
  Note(fiber, operands, element_bytes);
  /* Lanes have registers of each other's rows. */
  struct Meeting* warp = &fiber->launch->warps[fiber->number / kLanes];
  fiber->fragment = a;
  Meet(fiber, warp, kLanes);
  AddProduct(fiber, operand, operands, element_bytes, sums);
  Meet(fiber, warp, kLanes);
}

void tf_rt_sim_product_commit(const struct tf_sim_thread* thread) {
  struct Products* products = FiberOf(thread)->products;
  if (products != NULL) ++products->group;
}

void tf_rt_sim_product_wait(const struct tf_sim_thread* thread,
                            uint32_t groups) {
  struct Fiber* fiber = FiberOf(thread);
  struct Products* products = fiber->products;
  if (products == NULL) return;
  uint32_t left = 0;
  for (uint32_t i = 0; i < products->count; ++i) {
    if (products->product[i].group + groups >= products->group) {
      products->product[left++] = products->product[i];
    } else if (fiber->number % kLanes == 0 &&
               Checksum(products->product[i].operands,
                        products->product[i].element_bytes) !=
                   products->product[i].checksum) {
      Fault(fiber, "an operand of a product changed before the wait for it");
    }
  }
  products->count = left;
  /* All threads of a warp wait together. */
  Meet(fiber, &fiber->launch->warps[fiber->number / kLanes], kLanes);
}

void tf_rt_sim_drop_products(struct Fiber* fiber) {
  if (fiber->products == NULL) return;
  fiber->products->count = 0;
  fiber->products->group = 0;
}

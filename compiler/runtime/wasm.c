/* WebAssembly: what the runtime and generated code need of a C library, and the
 * runtime of a machine with one thread. Memory is a list of free blocks below a
 * top that grows with the module's memory. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"

enum { kUnit = 64, kPage = 65536 };

/* In the unit before each block; `bytes` counts it. */
struct Header {
  size_t bytes;
  struct Header* next; /* of a free block: the next one in memory */
};

/* The first byte behind the module's data; the linker defines it. */
extern char __heap_base;
static struct Header* free_blocks; /* ascending in memory; no two touch */
static char* top;

static char* EndOf(struct Header* block) { return (char*)block + block->bytes; }

/* Makes the memory reach to `end`. Non-zero if it cannot. */
static int Reach(size_t end) {
  const size_t now = __builtin_wasm_memory_size(0) * (size_t)kPage;
  if (end <= now) return 0;
  const size_t pages = (end - now + kPage - 1) / kPage;
  return __builtin_wasm_memory_grow(0, pages) == (size_t)-1;
}

/* Every block is aligned to 64 bytes, whatever `alignment` is. */
void* aligned_alloc(size_t alignment, size_t bytes) {
  if (alignment > kUnit || bytes > SIZE_MAX - 3 * (size_t)kUnit) return NULL;
  const size_t wanted = (bytes + kUnit - 1) / kUnit * kUnit + kUnit;
  for (struct Header** at = &free_blocks; *at != NULL; at = &(*at)->next) {
    struct Header* block = *at;
    if (block->bytes < wanted) continue;
    if (block->bytes - wanted >= 2 * kUnit) {
      struct Header* rest = (struct Header*)((char*)block + wanted);
      rest->bytes = block->bytes - wanted;
      rest->next = block->next;
      block->bytes = wanted;
      *at = rest;
    } else {
      *at = block->next;
    }
    return (char*)block + kUnit;
  }
  if (top == NULL) {
    top = (char*)(((size_t)&__heap_base + kUnit - 1) / kUnit * kUnit);
  }
  if (wanted > SIZE_MAX - (size_t)top || Reach((size_t)top + wanted) != 0) {
    return NULL;
  }
  struct Header* block = (struct Header*)top;
  block->bytes = wanted;
  top += wanted;
  return (char*)block + kUnit;
}

void free(void* payload) {
  if (payload == NULL) return;
  struct Header* block = (struct Header*)((char*)payload - kUnit);
  struct Header* before = NULL;
  struct Header** at = &free_blocks;
  while (*at != NULL && *at < block) {
    before = *at;
    at = &before->next;
  }
  block->next = *at;
  *at = block;
  if (block->next != NULL && EndOf(block) == (char*)block->next) {
    block->bytes += block->next->bytes;
    block->next = block->next->next;
  }
  if (before != NULL && EndOf(before) == (char*)block) {
    before->bytes += block->bytes;
    before->next = block->next;
    block = before;
  }
  /* What is free below the top goes back to it. */
  if (EndOf(block) == top) {
    struct Header** last = &free_blocks;
    while (*last != block) last = &(*last)->next;
    *last = NULL;
    top = (char*)block;
  }
}

/* For the host, which places arrays in the module's memory. */
void* tilefarm_alloc(size_t bytes) { return aligned_alloc(kUnit, bytes); }
void tilefarm_free(void* block) { free(block); }

/* Bulk instructions. */
void* memset(void* to, int byte, size_t bytes) {
  return __builtin_memset(to, byte, bytes);
}
void* memcpy(void* to, const void* from, size_t bytes) {
  return __builtin_memcpy(to, from, bytes);
}
void* memmove(void* to, const void* from, size_t bytes) {
  return __builtin_memmove(to, from, bytes);
}
int memcmp(const void* a, const void* b, size_t bytes) {
  const unsigned char* x = a;
  const unsigned char* y = b;
  for (size_t i = 0; i < bytes; ++i) {
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

char* getenv(const char* name) {
  (void)name;
  return NULL;
}

/* The only thread's values. */
enum { kKeys = 8 };
static const void* values[kKeys];
static uint32_t keys;

int pthread_key_create(uint32_t* key, void (*destructor)(void*)) {
  (void)destructor;
  if (keys == kKeys) return 1;
  *key = keys++;
  return 0;
}
int pthread_key_delete(uint32_t key) {
  values[key] = NULL;
  return 0;
}
void* pthread_getspecific(uint32_t key) { return (void*)values[key]; }
int pthread_setspecific(uint32_t key, const void* value) {
  values[key] = value;
  return 0;
}

int32_t tf_rt_parallel_for(tf_rt_body body, void* context, int64_t n,
                           int32_t cores) {
  (void)cores;
  return body(0, n, context);
}
void tf_rt_parallel_shutdown(void) {}

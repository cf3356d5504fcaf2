// Artifacts for a real GPU of CUDA, from PTX by hand: `out` becomes twice `in`,
// for kElements floats, unless the name says otherwise.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

enum { kElements = 1000, kThreads = 128 };

// Each kernel has the address of its element of `in` in %in, that of `out` in
// %out and its number in %i.
#define ENTRY(name, body)                                                \
  ".visible .entry " #name                                               \
  "(.param .u64 p_in, .param .u64 p_out)\n"                              \
  "{\n"                                                                  \
  ".reg .pred %p;\n.reg .b32 %r<3>, %i;\n.reg .b64 %o, %in, %out;\n"     \
  ".reg .f32 %f;\n"                                                      \
  "mov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ntid.x;\nmov.u32 %i, %tid.x;\n" \
  "mad.lo.s32 %i, %r0, %r1, %i;\n"                                       \
  "setp.ge.s32 %p, %i, 1000;\n@%p ret;\n"                                \
  "mul.wide.s32 %o, %i, 4;\n"                                            \
  "ld.param.u64 %in, [p_in];\ncvta.to.global.u64 %in, %in;\n"            \
  "add.s64 %in, %in, %o;\n"                                              \
  "ld.param.u64 %out, [p_out];\ncvta.to.global.u64 %out, %out;\n"        \
  "add.s64 %out, %out, %o;\n"                                            \
  "ld.global.f32 %f, [%in];\nadd.f32 %f, %f, %f;\n" body                 \
  "st.global.f32 [%out], %f;\nret;\n}\n"

static const char kPtx[] =
    ".version 8.0\n.target sm_70\n.address_size 64\n" ENTRY(good, "") ENTRY(
        wrong, "setp.eq.s32 %p, %i, 777;\n@%p add.f32 %f, %f, 0f3A83126F;\n")
        ENTRY(past_end, "st.global.f32 [%out+8], %f;\n") ENTRY(
            to_input, "st.global.f32 [%in], %f;\n")
            ENTRY(illegal, "mov.u64 %out, 16;\n") ENTRY(traps, "trap;\n") ENTRY(
                hangs,
                "$loop:\nld.volatile.global.f32 %f, [%in];\nbra $loop;\n");

static int (*get_error)(int, const char**);
static int last = 0;

static int Launch(const char* name, void* stream, void* in, void* out) {
  static void* module = NULL;
  static int (*get_function)(void**, void*, const char*);
  static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, unsigned, void*, void**, void**);
  if (module == NULL) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) return -1;
    int (*load)(void**, const void*) = dlsym(driver, "cuModuleLoadData");
    get_function = dlsym(driver, "cuModuleGetFunction");
    get_error = dlsym(driver, "cuGetErrorString");
    launch = dlsym(driver, "cuLaunchKernel");
    last = load(&module, kPtx);
    if (last != 0) return last;
  }
  void* kernel = NULL;
  last = get_function(&kernel, module, name);
  if (last != 0) return last;
  void* parameters[] = {&in, &out};
  return last = launch(kernel, (kElements + kThreads - 1) / kThreads, 1, 1,
                       kThreads, 1, 1, 0, stream, parameters, NULL);
}

#define KERNEL(name)                                 \
  const char* name##_error(void) {                   \
    const char* text = "no driver";                  \
    if (get_error != NULL) get_error(last, &text);   \
    return text;                                     \
  }                                                  \
  int name##_on(void* stream, void* in, void* out) { \
    return Launch(#name, stream, in, out);           \
  }

KERNEL(good)
KERNEL(wrong)
KERNEL(past_end)
KERNEL(to_input)
KERNEL(illegal)
KERNEL(traps)
KERNEL(hangs)

// Hand-written kernels for the runner's tests, good and bad: `out` becomes
// twice `in`, for kElements floats, unless the name says otherwise.
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kElements = 1000 };

static void Double(const float* in, float* out) {
  for (int i = 0; i < kElements; ++i) out[i] = 2 * in[i];
}

int good(void* in, void* out) {
  Double(in, out);
  return 0;
}

int slow(void* in, void* out) {
  struct timespec pause = {0, 20000000};
  nanosleep(&pause, NULL);
  return good(in, out);
}

// Of the CPU.
static void Work(double seconds) {
  const clock_t start = clock();
  while ((double)(clock() - start) < seconds * CLOCKS_PER_SEC) {
  }
}

static int calls = 0;

int starts_up(void* in, void* out) {
  if (calls++ == 0) Work(0.1);
  return good(in, out);
}

// As where a page is on a slow disk, or the machine stalls.
int stalls_at_first(void* in, void* out) {
  struct timespec pause = {0, 800000000};
  if (calls++ == 0) nanosleep(&pause, NULL);
  return good(in, out);
}

// Fails once it has run more often than warm-up and samples of one run each do.
int tires(void* in, void* out) { return ++calls > 2000 ? 1 : good(in, out); }

int crash(void* in, void* out) {
  (void)in, (void)out;
  *(volatile int*)8 = 1;
  return 0;
}

int aborts(void* in, void* out) {
  (void)in, (void)out;
  abort();
}

int loops(void* in, void* out) {
  (void)in, (void)out;
  for (;;) {
  }
}

int loops_ignoring_sigterm(void* in, void* out) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  return loops(in, out);
}

int wrong(void* in, void* out) {
  Double(in, out);
  ((float*)out)[777] += 1e-3f;
  return 0;
}

int not_a_number(void* in, void* out) {
  Double(in, out);
  ((float*)out)[3] = NAN;
  return 0;
}

int skips_last(void* in, void* out) {
  float last = ((float*)out)[kElements - 1];
  Double(in, out);
  ((float*)out)[kElements - 1] = last;
  return 0;
}

// Right at first, wrong from the fifth call on: a race, say.
int wrong_later(void* in, void* out) {
  static int calls = 0;
  Double(in, out);
  if (++calls > 4) ((float*)out)[0] += 1;
  return 0;
}

int writes_past_end(void* in, void* out) {
  Double(in, out);
  ((float*)out)[kElements] = 1;
  return 0;
}

int reads_past_end(void* in, void* out) {
  Double(in, out);
  ((float*)out)[0] += 0 * ((volatile float*)in)[kElements];
  return 0;
}

int allocates(void* in, void* out) {
  for (;;) {
    char* block = malloc(16 << 20);
    if (block == NULL) return -1;
    memset(block, 1, 16 << 20);
  }
  return good(in, out);
}

int exits(void* in, void* out) {
  good(in, out);
  exit(0);
}

int returns_seven(void* in, void* out) {
  good(in, out);
  return 7;
}

// Leaves processes behind, one of them in a session of its own, which write
// their ids where the test looks: FSIZE 0 allows no files, so the output.
int forks(void* in, void* out) {
  static int forked = 0;
  good(in, out);
  if (forked) return 0;
  forked = 1;
  for (int i = 0; i < 2; ++i) {
    if (fork() == 0) {
      if (i == 1) setsid();
      for (;;) pause();
    }
  }
  return 0;
}

int prints(void* in, void* out) {
  printf("noise on stdout\n");
  fflush(stdout);
  fprintf(stderr, "noise on stderr\n");
  write(1, "more noise\n", 11);
  return good(in, out);
}

// Right the first time: spoils its input for the next.
int spoils_input(void* in, void* out) {
  Double(in, out);
  ((float*)in)[0] += 1;
  return 0;
}

// Of an input of 2^21 floats.
int reads_past_large_end(void* in, void* out) {
  Double(in, out);
  ((float*)out)[0] += 0 * ((volatile float*)in)[1 << 21];
  return 0;
}

// In place: x *= 2.
int doubles_in_place(void* x) {
  float* v = x;
  for (int i = 0; i < kElements; ++i) v[i] *= 2;
  return 0;
}

// log(in): NaN for what is below zero.
int logarithm(void* in, void* out) {
  for (int i = 0; i < kElements; ++i) {
    ((float*)out)[i] = logf(((const float*)in)[i]);
  }
  return 0;
}

int infinity_everywhere(void* in, void* out) {
  (void)in;
  for (int i = 0; i < kElements; ++i) ((float*)out)[i] = INFINITY;
  return 0;
}

// kElements int32 divided by another kElements: the divisor must not be 0.
int divides(void* a, void* b, void* out) {
  for (int i = 0; i < kElements; ++i) {
    ((int32_t*)out)[i] = ((int32_t*)a)[i] / ((int32_t*)b)[i];
  }
  return 0;
}

int divides_wrong_once(void* a, void* b, void* out) {
  divides(a, b, out);
  ((int32_t*)out)[5] += 1;
  return 0;
}

// Forty parameters of one float: the last is the sum of the others' indices
// times their values.
#define P4(n) void *a##n##0, void *a##n##1, void *a##n##2, void *a##n##3
int forty(P4(0), P4(1), P4(2), P4(3), P4(4), P4(5), P4(6), P4(7), P4(8),
          P4(9)) {
  *(float*)a93 = *(float*)a00 + 2 * *(float*)a92;
  return 0;
}

// 1 from the second address on at which its input stands.
int fails_in_one_place(void* in, void* out) {
  static void* first = NULL;
  if (first == NULL) first = in;
  good(in, out);
  return in != first;
}

// Kernels with a layout-free first parameter: `in` packed is `in` backwards.
static void Reverse(const float* in, float* out) {
  for (int i = 0; i < kElements; ++i) out[i] = in[kElements - 1 - i];
}

static int DoubleReversed(void* packed, void* out) {
  for (int i = 0; i < kElements; ++i) {
    ((float*)out)[i] = 2 * ((float*)packed)[kElements - 1 - i];
  }
  return 0;
}

#define PACKED_KERNEL(name, whole, bytes, pack_body, packed_body)    \
  int name(void* in, void* out) { return whole(in, out); }           \
  size_t name##_packed_bytes(int i) { return i == 0 ? (bytes) : 0; } \
  int name##_pack(int i, const void* source, void* packed) {         \
    if (i != 0) return -1;                                           \
    pack_body;                                                       \
    return 0;                                                        \
  }                                                                  \
  int name##_packed(void* in, void* out) { packed_body; }

PACKED_KERNEL(packs, good, 4 * kElements, Reverse(source, packed),
              return DoubleReversed(in, out))
PACKED_KERNEL(packs_wrongly, good, 4 * kElements,
              memcpy(packed, source, 4 * kElements),
              return DoubleReversed(in, out))
PACKED_KERNEL(packs_in_part, good, 4 * kElements,
              memset(packed, 0, 4 * (kElements - 1)),
              return DoubleReversed(in, out))
PACKED_KERNEL(packs_past_end, good, 64, Reverse(source, packed),
              return DoubleReversed(in, out))
PACKED_KERNEL(packs_too_much, good, (size_t)1 << 40, Reverse(source, packed),
              return DoubleReversed(in, out))
PACKED_KERNEL(fails_to_pack, good, 4 * kElements, return 9,
              return DoubleReversed(in, out))
// The two entry points do not agree.
PACKED_KERNEL(whole_is_wrong, wrong, 4 * kElements, Reverse(source, packed),
              return DoubleReversed(in, out))
// Packs for longer than the first run of a candidate may last.
PACKED_KERNEL(packs_slowly, good, 4 * kElements, Work(0.8);
              Reverse(source, packed), return DoubleReversed(in, out))
PACKED_KERNEL(packed_loops, good, 4 * kElements, Reverse(source, packed),
              return loops(in, out))
PACKED_KERNEL(packed_is_slow, good, 4 * kElements, Reverse(source, packed),
              return slow(in, out))

// Returns 7 when it has run for the 1,100th time. As fast with sanitizers.
__attribute__((no_sanitize("address", "thread", "undefined"))) static int
FewRuns(void* packed, void* out) {
  static int runs = 0;
  for (int i = 0; i < kElements; ++i) {
    ((float*)out)[i] = 2 * ((float*)packed)[kElements - 1 - i];
  }
  return ++runs < 1100 ? 0 : 7;
}
PACKED_KERNEL(packed_few_runs, good, 4 * kElements, Reverse(source, packed),
              return FewRuns(in, out))

// The same of a parameter so large that the runner packs it into memory which
// candidates use one after another.
enum { kLarge = 1 << 20 };
static void ReverseLarge(const float* in, float* out) {
  for (int i = 0; i < kLarge; ++i) out[i] = in[kLarge - 1 - i];
}

static int DoubleLargeReversed(void* packed, void* out) {
  for (int i = 0; i < kElements; ++i) {
    ((float*)out)[i] = 2 * ((float*)packed)[kLarge - 1 - i];
  }
  return 0;
}

PACKED_KERNEL(packs_large, good, 4 * kLarge, ReverseLarge(source, packed),
              return DoubleLargeReversed(in, out))
PACKED_KERNEL(packs_large_wrongly, good, 4 * kLarge,
              memset(packed, 0, 4 * kLarge),
              return DoubleLargeReversed(in, out))
PACKED_KERNEL(packs_large_past_end, good, 4 * kLarge - 64,
              ReverseLarge(source, packed), return DoubleLargeReversed(in, out))
PACKED_KERNEL(packs_large_twice, good, 8 * kLarge,
              ReverseLarge(source, (float*)packed + kLarge),
              return DoubleLargeReversed((float*)in + kLarge, out))

// Models (docs/formats.md, "Model artifacts") of one input and one output, of
// kElements floats each.
typedef struct {
  const char* name;
  int32_t dtype, rank;
  const int64_t* shape;
} TensorInfo;
static const int64_t kModelShape[] = {kElements};

#define MODEL(name, output_dtype, create_code, run_body)                  \
  int name##_inputs(void) { return 1; }                                   \
  int name##_outputs(void) { return 1; }                                  \
  const TensorInfo* name##_input(int i) {                                 \
    static const TensorInfo info = {"in", 1, 1, kModelShape};             \
    return i == 0 ? &info : NULL;                                         \
  }                                                                       \
  const TensorInfo* name##_output(int i) {                                \
    static const TensorInfo info = {"out", output_dtype, 1, kModelShape}; \
    return i == 0 ? &info : NULL;                                         \
  }                                                                       \
  int name##_create(const void* options, void** model) {                  \
    *model = (create_code) == 0 ? malloc(16) : NULL;                      \
    return create_code;                                                   \
  }                                                                       \
  int name##_run(void* model, const void* const* inputs,                  \
                 void* const* outputs) {                                  \
    void *in = (void*)inputs[0], *out = outputs[0];                       \
    if (model == NULL) return 5;                                          \
    run_body;                                                             \
  }                                                                       \
  void name##_destroy(void* model) { free(model); }                       \
  const char* name##_error(void) { return "a reason"; }

MODEL(model_good, 1, 0, return good(in, out))
MODEL(model_wrong, 1, 0, good(in, out); ((float*)out)[777] += 1; return 0)
MODEL(model_rounds, 1, 0, good(in, out); ((float*)out)[777] += 1e-4f; return 0)
MODEL(model_wavers, 1, 0, return wrong_later(in, out))
MODEL(model_crashes, 1, 0, return crash(in, out))
MODEL(model_fails, 1, 0, return 7)
MODEL(model_is_not_made, 1, 3, return good(in, out))
MODEL(model_of_integers, 6, 0, return good(in, out))

// Oracles of some of these (compiler/oracle/oracle.h): `oracle_NAME` makes the
// outputs of NAME and allows each float a millionth of itself.
static int WithBounds(int code, const float* out, float* bounds, int count) {
  for (int i = 0; bounds != NULL && i < count; ++i) {
    bounds[i] = isinf(out[i]) ? 0 : 1e-6f * fabsf(out[i]);
  }
  return code;
}

#define ORACLE(name, call, output, count)                      \
  int oracle_##name(void* const* b, void* const* bounds) {     \
    return WithBounds(call, b[output], bounds[output], count); \
  }

#define B4(n) b[n], b[n + 1], b[n + 2], b[n + 3]
ORACLE(good, good(b[0], b[1]), 1, kElements)
ORACLE(packs, packs(b[0], b[1]), 1, kElements)
ORACLE(crash, crash(b[0], b[1]), 1, kElements)
ORACLE(loops, loops(b[0], b[1]), 1, kElements)
ORACLE(logarithm, logarithm(b[0], b[1]), 1, kElements)
ORACLE(infinity_everywhere, infinity_everywhere(b[0], b[1]), 1, kElements)
ORACLE(doubles_in_place, doubles_in_place(b[0]), 0, kElements)
ORACLE(divides, divides(b[0], b[1], b[2]), 2, kElements)
ORACLE(forty,
       forty(B4(0), B4(4), B4(8), B4(12), B4(16), B4(20), B4(24), B4(28),
             B4(32), B4(36)),
       39, 1)

// Its last outputs are very large: they give the others no room.
int masked(void* in, void* out) {
  Double(in, out);
  for (int i = 900; i < kElements; ++i) ((float*)out)[i] = -1e9f;
  return 0;
}
ORACLE(masked, masked(b[0], b[1]), 1, kElements)

// One output is a little wrong beside those.
int masked_wrong_once(void* in, void* out) {
  masked(in, out);
  ((float*)out)[5] *= 1.002f;
  return 0;
}

// Neighbours' rounding: every output is off by a part of the largest.
int rounds_by_neighbours(void* in, void* out) {
  Double(in, out);
  for (int i = 0; i < kElements; ++i) ((float*)out)[i] += 4e-7f;
  return 0;
}

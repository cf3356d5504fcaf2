// Artifacts as those of a GPU's target, for the fake driver (fake_cuda.c):
// `out` becomes twice `in`, for kElements floats, unless the name says
// otherwise.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kElements = 1000 };

static void* Hook(const char* name) {
  void* driver = dlopen(getenv("TILEFARM_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  return driver == NULL ? NULL : dlsym(driver, name);
}

static int Launch(void) {
  int (*launch)(void) = (int (*)(void))Hook("fake_cuda_launch");
  return launch == NULL ? 3 : launch();
}

static void Double(const float* in, float* out) {
  for (int i = 0; i < kElements; ++i) out[i] = 2 * in[i];
}

static int calls = 0;

#define KERNEL(name)                                          \
  const char* name##_error(void) { return "text of " #name; } \
  int name##_on(void* stream, float* in, float* out)

KERNEL(good) {
  (void)stream;
  const int result = Launch();
  if (result == 0) Double(in, out);
  return result;
}
// The same function under another name: a state of a former artifact would
// show.
KERNEL(good_once) {
  return calls++ == 0 && stream != NULL ? good_on(stream, in, out) : 9;
}
KERNEL(slow) {
  const struct timespec pause = {0, 20000000};
  nanosleep(&pause, NULL);
  return good_on(stream, in, out);
}
KERNEL(wrong) {
  const int result = good_on(stream, in, out);
  out[777] += 1e-3f;
  return result;
}
KERNEL(wrong_later) {
  const int result = good_on(stream, in, out);
  if (++calls > 4) out[0] += 1;
  return result;
}
KERNEL(writes_past_end) {
  const int result = good_on(stream, in, out);
  out[kElements + 2] = 1;
  return result;
}
KERNEL(writes_before_start) {
  const int result = good_on(stream, in, out);
  out[-1] = 1;
  return result;
}
KERNEL(writes_input) {
  const int result = good_on(stream, in, out);
  in[5] = 3;
  return result;
}
KERNEL(reads_past_end) {
  const int result = good_on(stream, in, out);
  out[kElements - 1] = 2 * in[kElements];
  return result;
}
KERNEL(refuses) {
  (void)stream, (void)in, (void)out;
  return 1;
}
KERNEL(illegal_address) {
  const int result = good_on(stream, in, out);
  ((void (*)(int))Hook("fake_cuda_fail"))(700);
  return result;
}
KERNEL(hangs) {
  const int result = good_on(stream, in, out);
  ((void (*)(void))Hook("fake_cuda_hang"))();
  return result;
}
KERNEL(crashes) {
  (void)stream, (void)in, (void)out;
  *(volatile int*)8 = 1;
  return 0;
}
KERNEL(exits) {
  (void)stream, (void)in, (void)out;
  exit(3);
}
// What the filter refuses: each of these must fail.
KERNEL(escapes) {
  if (fork() >= 0) return 11;
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) return 12;
  if (open("/tmp/tilefarm-escaped", O_CREAT | O_WRONLY, 0666) >= 0) return 13;
  if (kill(getppid(), 0) == 0) return 14;
  return good_on(stream, in, out);
}
// With one parameter.
KERNEL(doubles_in_place) {
  (void)stream, (void)out;
  const int result = Launch();
  if (result == 0) Double(in, in);
  return result;
}
const char* no_launcher_error(void) { return ""; }

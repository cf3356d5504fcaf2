/* Calls an artifact's function on another architecture, for tests:
 *
 *   run_artifact LIB.so SYMBOL FILE BYTES...
 *
 * FILE holds the buffers, BYTES of each, one after the other; what they hold
 * after the call is written back. Exits with what the function returned. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMostBuffers = 8 };

int main(int argc, char** argv) {
  if (argc < 5 || argc > 4 + kMostBuffers) return 100;
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 101;
  }
  void* function = dlsym(library, argv[2]);
  FILE* file = fopen(argv[3], "r+b");
  if (function == NULL || file == NULL) return 102;
  void* buffers[kMostBuffers] = {0};
  size_t bytes[kMostBuffers] = {0};
  const int count = argc - 4;
  for (int i = 0; i < count; ++i) {
    bytes[i] = strtoull(argv[4 + i], NULL, 10);
    /* No better aligned than an element has to be. */
    char* block = malloc(bytes[i] + 128);
    if (block == NULL) return 103;
    buffers[i] = (char*)(((uintptr_t)block + 63) / 64 * 64 + 8);
    if (fread(buffers[i], 1, bytes[i], file) != bytes[i]) return 104;
  }
  const int code = ((
      int (*)(void*, void*, void*, void*, void*, void*, void*, void*))function)(
      buffers[0], buffers[1], buffers[2], buffers[3], buffers[4], buffers[5],
      buffers[6], buffers[7]);
  rewind(file);
  for (int i = 0; i < count; ++i) {
    if (fwrite(buffers[i], 1, bytes[i], file) != bytes[i]) return 105;
  }
  if (fclose(file) != 0) return 106;
  dlclose(library); /* joins the pool's threads */
  return code;
}

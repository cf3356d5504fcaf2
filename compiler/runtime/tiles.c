/* The matrix unit's registers are large. Linux saves them only for processes
 * that request it, and kills other processes that use them. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"

int32_t tf_rt_enable_tiles(void) {
#if defined(__x86_64__)
  enum { kSysArchPrctl = 158, kRequestPermission = 0x1023, kTileData = 18 };
  /* 0: not requested yet. Requesting twice has no effect. */
  static _Atomic(int) granted;
  if (__c11_atomic_load(&granted, __ATOMIC_ACQUIRE)) return 0;
  if (syscall(kSysArchPrctl, kRequestPermission, kTileData) != 0) return 1;
  __c11_atomic_store(&granted, 1, __ATOMIC_RELEASE);
  return 0;
#else
  return 1;
#endif
}

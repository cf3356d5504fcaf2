// Whether this is built with AddressSanitizer or ThreadSanitizer, by GCC or by
// Clang: TILEFARM_SANITIZED is 1 or 0.
#ifndef TILEFARM_BASE_SANITIZERS_H_
#define TILEFARM_BASE_SANITIZERS_H_

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TILEFARM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TILEFARM_SANITIZED 1
#endif
#endif
#ifndef TILEFARM_SANITIZED
#define TILEFARM_SANITIZED 0
#endif

#endif  // TILEFARM_BASE_SANITIZERS_H_

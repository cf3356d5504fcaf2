// Checks of invariants of this code. Never used for input from users, wire or
// disk, whose errors are an absl::Status.
#ifndef TILEFARM_BASE_CHECK_H_
#define TILEFARM_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define TF_CHECK(cond)                                                  \
  do {                                                                  \
    if (!(cond)) [[unlikely]] {                                         \
      std::fprintf(stderr, "%s:%d: internal error: check failed: %s\n", \
                   __FILE__, __LINE__, #cond);                          \
      std::abort();                                                     \
    }                                                                   \
  } while (false)

#endif  // TILEFARM_BASE_CHECK_H_

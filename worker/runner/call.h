// Calls functions whose number of parameters is known only at run time.
#ifndef TILEFARM_WORKER_RUNNER_CALL_H_
#define TILEFARM_WORKER_RUNNER_CALL_H_

#include <cstddef>
#include <utility>

#include "worker/runner_protocol.h"

namespace tilefarm::worker {

template <size_t... I>
int CallWith(void* function, void* const* args, std::index_sequence<I...>) {
  using Function = int (*)(decltype(static_cast<void>(I), (void*)nullptr)...);
  return reinterpret_cast<Function>(function)(args[I]...);
}

// The largest number of arguments: the stream of a device, and the buffers.
inline constexpr size_t kMaxArguments = kMaxBuffers + 1;

// Calls a function with at least as many arguments as it has parameters, of
// `args`, which has kMaxArguments. Further arguments are harmless, because in
// the C calling conventions of our targets the caller removes them.
inline int Call(void* function, void* const* args, size_t count) {
  if (count <= 6)
    return CallWith(function, args, std::make_index_sequence<6>());
  if (count <= 32) {
    return CallWith(function, args, std::make_index_sequence<32>());
  }
  return CallWith(function, args, std::make_index_sequence<kMaxArguments>());
}

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_CALL_H_

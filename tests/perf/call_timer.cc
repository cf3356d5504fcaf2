// Calls a compiled function many times and returns the time of one call.
// vs_tvm.py loads it, so that both sides are called from the same kind of loop.
#include <chrono>
#include <cstdint>

namespace {

using Clock = std::chrono::steady_clock;

template <typename Call>
double SecondsPerCall(int64_t repeats, const Call& call) {
  const auto start = Clock::now();
  for (int64_t i = 0; i < repeats; ++i) {
    if (call() != 0) return -1;
  }
  return std::chrono::duration<double>(Clock::now() - start).count() /
         static_cast<double>(repeats);
}

template <typename... P>
double TimePlain(void* function, int64_t repeats, P*... buffers) {
  const auto call = reinterpret_cast<int (*)(P * ...)>(function);
  return SecondsPerCall(repeats, [&] { return call(buffers...); });
}

// The result of TVM's functions (a TVMFFIAny).
struct Result {
  int64_t type = 0;
  int64_t value = 0;
};

}  // namespace

// For `int function(void*, ...)` with 2 to 6 buffers; -1 if a call fails or for
// another count.
extern "C" double tilefarm_seconds_plain(void* function, void** buffers,
                                         int count, int64_t repeats) {
  void** const b = buffers;
  switch (count) {
    case 2:
      return TimePlain(function, repeats, b[0], b[1]);
    case 3:
      return TimePlain(function, repeats, b[0], b[1], b[2]);
    case 4:
      return TimePlain(function, repeats, b[0], b[1], b[2], b[3]);
    case 5:
      return TimePlain(function, repeats, b[0], b[1], b[2], b[3], b[4]);
    case 6:
      return TimePlain(function, repeats, b[0], b[1], b[2], b[3], b[4], b[5]);
    default:
      return -1;
  }
}

// For TVM's calling convention: handle, packed arguments, their count, result.
extern "C" double tilefarm_seconds_packed(void* function, const void* arguments,
                                          int count, int64_t repeats) {
  const auto call =
      reinterpret_cast<int (*)(void*, const void*, int, Result*)>(function);
  Result result;
  return SecondsPerCall(
      repeats, [&] { return call(nullptr, arguments, count, &result); });
}

#include "transport/grpc_log.h"

#include <grpc/support/log.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace tilefarm::transport {
namespace {

constexpr int kLinesPerSecond = 10;

std::atomic<LogLevel> level_of_grpc = LogLevel::kWarning;
std::atomic<int64_t> current_second = 0;
std::atomic<int> lines = 0;

void Take(gpr_log_func_args* args) {
  const int64_t second = absl::ToInt64Seconds(Clock::Real().Monotonic());
  if (current_second.exchange(second) != second) lines = 0;
  const int line = ++lines;
  if (line > kLinesPerSecond) return;
  Log(level_of_grpc, "grpc",
      absl::StrCat(args->message, line == kLinesPerSecond
                                      ? " (and more in this second)"
                                      : ""));
}

}  // namespace

void RouteGrpcLog(LogLevel level) {
  level_of_grpc = level;
  gpr_set_log_function(Take);
}

}  // namespace tilefarm::transport

#include "database/record_check.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

namespace tilefarm::database {
namespace {

class Sum {
 public:
  void Add(uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15;
    state_ ^= state_ >> 32;
  }
  void Add(std::string_view text) {
    Add(static_cast<uint64_t>(text.size()));
    size_t at = 0;
    for (; at + 8 <= text.size(); at += 8) Add(WordAt(text, at, 8));
    if (at < text.size()) Add(WordAt(text, at, text.size() - at));
  }
  void Add(double value) {
    // SQLite keeps neither the sign of zero nor the bits of NaN.
    if (value == 0) value = 0;
    Add(std::isnan(value) ? ~uint64_t{0} : std::bit_cast<uint64_t>(value));
  }
  // JSON has no infinity: it is read back as NaN.
  void AddSample(double value) {
    Add(std::isfinite(value) ? value : std::nan(""));
  }
  int64_t value() const { return static_cast<int64_t>(state_); }

 private:
  // `size` bytes, the first one the lowest.
  static uint64_t WordAt(std::string_view text, size_t at, size_t size) {
    if constexpr (std::endian::native == std::endian::little) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + at, size);
      return word;
    }
    uint64_t word = 0;
    for (size_t i = 0; i < size; ++i) {
      word |= static_cast<uint64_t>(static_cast<unsigned char>(text[at + i]))
              << (8 * i);
    }
    return word;
  }

  uint64_t state_ = 0x74696c656661726d;
};

}  // namespace

int64_t CheckOf(const Record& r) {
  Sum sum;
  for (const std::string_view text :
       {std::string_view(r.candidate_id), std::string_view(r.workload_hash),
        std::string_view(r.program), std::string_view(r.target),
        std::string_view(r.trace), std::string_view(r.device),
        std::string_view(r.device_model), StatusName(r.status),
        std::string_view(r.error), std::string_view(r.protocol.layout),
        std::string_view(r.isolation), std::string_view(r.device_state),
        std::string_view(r.fingerprint), std::string_view(r.code_digest),
        std::string_view(r.job_id), std::string_view(r.model_score),
        std::string_view(r.recorded_at)}) {
    sum.Add(text);
  }
  sum.Add(static_cast<uint64_t>(r.seconds.size()));
  for (const double sample : r.seconds) sum.AddSample(sample);
  for (const double value :
       {r.median_seconds, r.ci_low_seconds, r.ci_high_seconds, r.max_abs_error,
        r.max_rel_error, r.compile_seconds}) {
    sum.Add(value);
  }
  sum.Add(static_cast<uint64_t>(r.sequence));
  sum.Add(static_cast<uint64_t>(r.protocol.cores));
  sum.Add(uint64_t{r.verified} | uint64_t{r.stopped_early} << 1 |
          uint64_t{r.emulated} << 2 | uint64_t{r.protocol.cold_cache} << 3);
  return sum.value();
}

}  // namespace tilefarm::database

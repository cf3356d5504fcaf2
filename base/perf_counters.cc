#include "base/perf_counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tilefarm {
namespace {

constexpr PerfEvent kCycles = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES};
constexpr PerfEvent kInstructions = {PERF_TYPE_HARDWARE,
                                     PERF_COUNT_HW_INSTRUCTIONS};
constexpr PerfEvent kBranchMisses = {PERF_TYPE_HARDWARE,
                                     PERF_COUNT_HW_BRANCH_MISSES};
constexpr PerfEvent kCacheMisses = {PERF_TYPE_HARDWARE,
                                    PERF_COUNT_HW_CACHE_MISSES};
constexpr PerfEvent kL1Misses = {PERF_TYPE_HW_CACHE,
                                 PERF_COUNT_HW_CACHE_L1D |
                                     (PERF_COUNT_HW_CACHE_OP_READ << 8) |
                                     (PERF_COUNT_HW_CACHE_RESULT_MISS << 16)};

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The family and model of the processor; {} where it is no x86.
struct Processor {
  std::string vendor;
  int family = 0;
};
Processor ReadProcessor() {
  Processor processor;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (parts.size() != 2) continue;
    if (absl::StartsWith(line, "vendor_id")) processor.vendor = parts[1];
    if (absl::StartsWith(line, "cpu family")) {
      (void)absl::SimpleAtoi(parts[1], &processor.family);
    }
  }
  return processor;
}

// Slots a cycle of AMD's processors with the events below: Zen 4 and Zen 5. 0:
// another processor. Family 25 has Zen 3 as well, which lacks the events; there
// they do not count, and TopDownOfZen rejects the counts.
int ZenSlots(const Processor& processor) {
  if (processor.vendor != "AuthenticAMD") return 0;
  if (processor.family == 26) return 8;
  return processor.family == 25 ? 6 : 0;
}

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A group's members cannot count threads that are started later.
Descriptor OpenEvent(const PerfEvent& event, int group) {
  perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = event.type;
  attr.config = event.config;
  attr.disabled = group < 0 ? 1 : 0;
  attr.inherit = group == -1 ? 1 : 0;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.read_format =
      PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return Descriptor(static_cast<int>(
      syscall(SYS_perf_event_open, &attr, /*pid=*/0, /*cpu=*/-1,
              group < 0 ? -1 : group, PERF_FLAG_FD_CLOEXEC)));
}

std::optional<double> ReadCount(const Descriptor& event) {
  if (!event.is_open()) return std::nullopt;
  uint64_t values[3] = {};
  if (read(event.get(), values, sizeof values) != sizeof values) {
    return std::nullopt;
  }
  if (values[2] == 0) return std::nullopt;  // it never ran
  return static_cast<double>(values[0]) * static_cast<double>(values[1]) /
         static_cast<double>(values[2]);
}

// Intel's events of the top-down method, as the kernel names them; the first is
// the group's leader, which counts all slots.
constexpr const char* kIntelEvents[] = {"slots", "topdown-retiring",
                                        "topdown-bad-spec", "topdown-fe-bound",
                                        "topdown-be-bound"};
// Makes OpenEvent open a leader that does not count later threads.
constexpr int kNoInherit = -2;

}  // namespace

struct PerfCounters::Impl {
  Descriptor cycles, instructions, branch_misses, l1_misses, cache_misses;
  std::vector<Descriptor> top_down;
  int zen_slots = 0;
  bool is_intel = false;

  std::vector<const Descriptor*> All() const {
    std::vector<const Descriptor*> all = {
        &cycles, &instructions, &branch_misses, &l1_misses, &cache_misses};
    for (const Descriptor& one : top_down) all.push_back(&one);
    return all;
  }

  void OpenTopDown() {
    zen_slots = ZenSlots(ReadProcessor());
    if (zen_slots > 0) {
      for (const PerfEvent& event : TopDownEventsOfZen()) {
        top_down.push_back(OpenEvent(event, -1));
      }
    } else {
      constexpr char kFolder[] = "/sys/bus/event_source/devices/cpu/events/";
      for (const char* name : kIntelEvents) {
        const auto config =
            ParsePerfEvent(FirstLine(absl::StrCat(kFolder, name)));
        if (!config) break;
        const int leader = top_down.empty() ? kNoInherit : top_down[0].get();
        top_down.push_back(OpenEvent({PERF_TYPE_RAW, *config}, leader));
      }
      is_intel = top_down.size() == std::size(kIntelEvents);
    }
    if (!std::all_of(top_down.begin(), top_down.end(),
                     [](const Descriptor& one) { return one.is_open(); })) {
      top_down.clear();
    }
  }

  std::optional<TopDown> ReadTopDown(double all_cycles) const {
    if (top_down.empty()) return std::nullopt;
    std::vector<double> counts;
    for (const Descriptor& one : top_down) {
      const auto count = ReadCount(one);
      if (!count) return std::nullopt;
      counts.push_back(*count);
    }
    if (zen_slots > 0) return TopDownOfZen(counts, all_cycles, zen_slots);
    if (!is_intel || counts[0] <= 0) return std::nullopt;
    return TopDown{.retiring = counts[1] / counts[0],
                   .bad_speculation = counts[2] / counts[0],
                   .frontend_bound = counts[3] / counts[0],
                   .backend_bound = counts[4] / counts[0]};
  }
};

PerfCounters::PerfCounters(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
PerfCounters::~PerfCounters() = default;
PerfCounters::PerfCounters(PerfCounters&&) noexcept = default;
PerfCounters& PerfCounters::operator=(PerfCounters&&) noexcept = default;

absl::StatusOr<PerfCounters> PerfCounters::Open() {
  auto impl = std::make_unique<Impl>();
  impl->cycles = OpenEvent(kCycles, -1);
  if (!impl->cycles.is_open()) {
    const int error = errno;
    return ExplainPerfError(error,
                            FirstLine("/proc/sys/kernel/perf_event_paranoid"));
  }
  impl->instructions = OpenEvent(kInstructions, -1);
  impl->branch_misses = OpenEvent(kBranchMisses, -1);
  impl->l1_misses = OpenEvent(kL1Misses, -1);
  impl->cache_misses = OpenEvent(kCacheMisses, -1);
  impl->OpenTopDown();
  return PerfCounters(std::move(impl));
}

void PerfCounters::Start() {
  for (const Descriptor* one : impl_->All()) {
    if (!one->is_open()) continue;
    ioctl(one->get(), PERF_EVENT_IOC_RESET, 0);
    ioctl(one->get(), PERF_EVENT_IOC_ENABLE, 0);
  }
}

void PerfCounters::Stop() {
  for (const Descriptor* one : impl_->All()) {
    if (one->is_open()) ioctl(one->get(), PERF_EVENT_IOC_DISABLE, 0);
  }
}

PerfCounts PerfCounters::Read() const {
  PerfCounts counts;
  counts.cycles = ReadCount(impl_->cycles);
  counts.instructions = ReadCount(impl_->instructions);
  counts.branch_misses = ReadCount(impl_->branch_misses);
  counts.l1_misses = ReadCount(impl_->l1_misses);
  counts.cache_misses = ReadCount(impl_->cache_misses);
  counts.top_down = impl_->ReadTopDown(counts.cycles.value_or(0));
  return counts;
}

std::optional<uint64_t> ParsePerfEvent(const std::string& text) {
  uint64_t config = 0;
  bool any = false;
  for (const absl::string_view term :
       absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(term, absl::MaxSplits('=', 1));
    uint64_t value = 0;
    if (!absl::SimpleHexAtoi(parts.second, &value)) return std::nullopt;
    // As perf's "format" files of x86 say.
    if (parts.first == "event" && value <= 0xff) {
      config |= value;
    } else if (parts.first == "umask" && value <= 0xff) {
      config |= value << 8;
    } else {
      return std::nullopt;
    }
    any = true;
  }
  return any ? std::optional(config) : std::nullopt;
}

std::vector<PerfEvent> TopDownEventsOfZen() {
  // AMD's Processor Programming Reference for family 19h and 1Ah: event in bits
  // 0-7 and 32-35, unit mask in 8-15.
  return {{PERF_TYPE_RAW, 0xc1},          // ex_ret_ops
          {PERF_TYPE_RAW, 0x07aa},        // de_src_op_disp.all
          {PERF_TYPE_RAW, 0x1000001a0},   // no slot filled by the front end
          {PERF_TYPE_RAW, 0x100001ea0}};  // slots stalled by the back end
}

std::optional<TopDown> TopDownOfZen(const std::vector<double>& counts,
                                    double cycles, int slots_per_cycle) {
  const double slots = cycles * slots_per_cycle;
  if (!(slots > 0) || counts.size() != 4) return std::nullopt;
  TopDown result;
  result.retiring = counts[0] / slots;
  result.bad_speculation = std::max(0.0, counts[1] - counts[0]) / slots;
  result.frontend_bound = counts[2] / slots;
  result.backend_bound = counts[3] / slots;
  const double sum = result.retiring + result.bad_speculation +
                     result.frontend_bound + result.backend_bound;
  // The rest are slots of the other thread of the core. A processor without
  // these events counts something else, or nothing.
  if (!(sum > 0.3) || !(sum < 1.2) || !(result.retiring > 0)) {
    return std::nullopt;
  }
  return result;
}

absl::Status ExplainPerfError(int error, const std::string& paranoid) {
  if (error == EACCES || error == EPERM) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the system does not permit perf_event_open (perf_event_paranoid is ",
        paranoid.empty() ? "unknown" : paranoid,
        "; 2 or less is needed, and in a container a seccomp profile that "
        "allows the call, or CAP_PERFMON)"));
  }
  if (error == ENOSYS) {
    return absl::NotFoundError("the kernel has no perf_event_open");
  }
  if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP) {
    return absl::NotFoundError(
        "the machine gives no counters; of a virtual machine, its host has to "
        "pass them on");
  }
  return absl::UnavailableError(
      absl::StrCat("perf_event_open: ", strerror(error)));
}

}  // namespace tilefarm

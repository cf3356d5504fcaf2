#include "tests/property/gpu_differential.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/lower_function.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/schedule/schedule.h"
#include "compiler/space/design_space.h"
#include "compiler/target/target.h"
#include "tests/property/compiled_library.h"
#include "tests/property/random_gpu_trace.h"
#include "tests/property/random_text_program.h"

namespace tilefarm::property {
namespace {

// Operators have the products and rows that the design space has rules for.
constexpr double kOperatorShare = 0.4;
// One case in so many is for a GPU without asynchronous copies, and one in so
// many also becomes PTX.
constexpr uint64_t kOldGpuShare = 4;
constexpr uint64_t kPtxShare = 8;

const char* ModelOf(uint64_t seed) {
  return seed % kOldGpuShare == 1 ? "sm_75" : "sm_90a";
}

std::string TargetOf(const Case& c) {
  return c.gpu_target.empty() ? absl::StrCat("sim:", ModelOf(c.input_seed))
                              : c.gpu_target;
}

// What Oclgrind, which looks for races if OCLGRIND_DATA_RACES is set, finds in
// this process. It opens its log when a device is used first.
class OclgrindLog {
 public:
  OclgrindLog() {
    if (std::getenv("OCLGRIND_DATA_RACES") == nullptr) return;
    file_ = memfd_create("oclgrind", 0);
    setenv("OCLGRIND_LOG", absl::StrCat("/proc/self/fd/", file_).c_str(), 1);
  }

  // What it has written since the last time.
  std::string Read() {
    std::string text;
    char part[4096];
    while (file_ >= 0) {
      const ssize_t bytes =
          pread(file_, part, sizeof part, static_cast<off_t>(read_));
      if (bytes <= 0) break;
      text.append(part, static_cast<size_t>(bytes));
      read_ += static_cast<size_t>(bytes);
    }
    return text;
  }

 private:
  int file_ = -1;
  size_t read_ = 0;
};

OclgrindLog& Oclgrind() {
  static OclgrindLog log;
  return log;
}

// PTX goes to the driver as text.
void UseFakeCuda() {
  if (std::getenv("TILEFARM_CUDA_DRIVER") != nullptr) return;
  setenv("TILEFARM_CUDA_DRIVER", TILEFARM_FAKE_CUDA, 1);
  for (const char* assembler : {"TILEFARM_PTXAS", "TILEFARM_NVJITLINK"}) {
    setenv(assembler, "", 1);
  }
}

// What lowering may refuse though the schedule accepts it.
std::optional<std::string> KnownRefusal(const std::string& message) {
  static constexpr const char* kTexts[] = {
      "threads exchange values where not all of a block arrive",
      "is local to a thread, but its elements are written",
      "software pipeline:",
      "iterations; a GPU can have",
      "threads; the target can have",
      "bytes, shared by the threads of a block",
      "bytes of buffers of its own; it may have",
      "bytes of buffers; the target has",
      "and not by a sum, product, minimum or maximum of that element alone",
      "and the inner one uses the outer one's iteration",
      "which no GPU block can run for all",
      "parameters and intermediate buffers; at most",
      "is in no loop that is bound to threads",
      "elements are written by several blocks",
      "threads update the same elements of",
      "that another block of the kernel writes",
      "has its own, which a loop that is bound to this",
  };
  for (const char* text : kTexts) {
    if (absl::StrContains(message, text)) return text;
  }
  return std::nullopt;
}

// Parameters between bytes that nobody may change, at addresses that are a
// multiple of 16, and of nothing more.
class GuardedBuffers {
 public:
  explicit GuardedBuffers(const std::vector<Bytes>& contents) {
    for (const Bytes& bytes : contents) {
      const size_t room = (bytes.size() + 2 * kGuard + 63) / 64 * 64;
      Place& place = places_.emplace_back();
      place.all.reset(static_cast<uint8_t*>(std::aligned_alloc(64, room)));
      place.room = room;
      place.size = bytes.size();
      std::memset(place.all.get(), kFill, room);
      if (!bytes.empty()) {
        std::memcpy(place.all.get() + kGuard, bytes.data(), bytes.size());
      }
    }
  }

  std::vector<void*> Pointers() const {
    std::vector<void*> pointers;
    for (const Place& place : places_) {
      pointers.push_back(place.all.get() + kGuard);
    }
    return pointers;
  }

  // Empty if nothing outside of the parameters has changed.
  std::string Overrun(const ir::PrimFunc& program) const {
    for (size_t p = 0; p < places_.size(); ++p) {
      const Place& place = places_[p];
      for (size_t i = 0; i < place.room; ++i) {
        if (i >= kGuard && i < kGuard + place.size) continue;
        if (place.all.get()[i] == kFill) continue;
        return absl::StrCat(
            "byte ", static_cast<int64_t>(i) - static_cast<int64_t>(kGuard),
            " of ", program.params[p]->name, " is written, which has ",
            place.size);
      }
    }
    return "";
  }

  std::vector<Bytes> Contents() const {
    std::vector<Bytes> contents;
    for (const Place& place : places_) {
      const auto* first =
          reinterpret_cast<const std::byte*>(place.all.get() + kGuard);
      contents.emplace_back(first, first + place.size);
    }
    return contents;
  }

 private:
  static constexpr size_t kGuard = 256 + 16;
  static constexpr uint8_t kFill = 0xff;  // NaN in every float type
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  struct Place {
    std::unique_ptr<uint8_t, Free> all;
    size_t room = 0, size = 0;
  };
  std::vector<Place> places_;
};

CaseReport Differ(const Variant& variant, std::string what) {
  return {Verdict::kDiffer, variant.name, std::move(what), variant.trace};
}

const char* SourceOf(const Variant& variant) {
  if (variant.keeps_floats) return kRanDefault;
  return absl::StrContains(variant.trace, "sch.enter_postproc()") ? kRanDraws
                                                                  : kRanByHand;
}

// Whether the program lowers to kernels that fit the target.
absl::Status Lowers(const ir::PrimFunc& program, const target::Target& target) {
  const auto lowered = driver::LowerFunction(program, "f", target);
  if (!lowered.ok()) return lowered.status();
  return lower::SplitKernels(*lowered->function, *target.gpu).status();
}

// Runs it once. Empty, or what is wrong.
std::string RunOnce(const CompiledLibrary& library, const std::string& symbol,
                    const ir::PrimFunc& program, std::vector<Bytes>& buffers) {
  void* function = library.Find(symbol);
  if (function == nullptr) return "has no symbol";
  const GuardedBuffers guarded(buffers);
  if (CallFunction(function, guarded.Pointers()) != 0) {
    auto* error = reinterpret_cast<const char* (*)()>(
        library.Find(absl::StrCat(symbol, "_error")));
    const std::string text = error == nullptr ? "" : error();
    // Its kind first, for those who compare findings.
    return absl::StrCat("device, ", text.substr(0, text.find(' ')), ": ", text);
  }
  if (const std::string report = Oclgrind().Read(); !report.empty()) {
    return absl::StrCat("Oclgrind: ", report);
  }
  buffers = guarded.Contents();
  return guarded.Overrun(program);
}

std::optional<CaseReport> RunVariant(const Case& c, const ir::PrimFunc& program,
                                     const Expected& want,
                                     const Variant& variant,
                                     const CompiledLibrary& library,
                                     const std::string& symbol) {
  // The kernels read it when they are launched.
  constexpr char kSeed[] = "TILEFARM_SIM_SEED";
  const int runs = c.gpu_target.empty() ? 3 : 1;
  for (int run = 0; run < runs; ++run) {
    if (run == 0) {
      unsetenv(kSeed);
    } else {
      setenv(kSeed, absl::StrCat(c.input_seed * 7 + run).c_str(), 1);
    }
    std::vector<Bytes> got = SmallInputs(program, c.input_seed);
    if (std::string wrong = RunOnce(library, symbol, program, got);
        !wrong.empty()) {
      return Differ(variant, std::move(wrong));
    }
    const std::string difference = DifferenceFromExpected(
        program, want, got, SpreadOfTrace(variant.trace));
    if (!difference.empty()) {
      return Differ(variant, absl::StrCat("result: ", difference));
    }
  }
  if (!variant.keeps_floats || want.special.empty()) return std::nullopt;
  std::vector<Bytes> got = SpecialInputs(program, c.input_seed);
  if (std::string wrong = RunOnce(library, symbol, program, got);
      !wrong.empty()) {
    return Differ(variant, std::move(wrong));
  }
  const std::string special =
      Difference(program, want.special, got, /*exact=*/false);
  if (special.empty()) return std::nullopt;
  return Differ(variant, absl::StrCat("special values: ", special));
}

// A wrong result is the schedule's fault if the interpreter has it, too.
void BlameSchedule(const Case& c, const ir::PrimFunc& program,
                   const Expected& want, const Variant& variant,
                   CaseReport& report) {
  if (!ir::Verify(*variant.program).ok()) {
    report.what = absl::StrCat("schedule, does not verify: ", report.what);
    return;
  }
  for (const bool reverse : {false, true}) {
    std::vector<Bytes> got = SmallInputs(program, c.input_seed);
    ir::InterpretOptions options;
    options.reverse_concurrent_loops = reverse;
    if (!Interpret(*variant.program, got, options).ok()) continue;
    if (!DifferenceFromExpected(program, want, got,
                                SpreadOfTrace(variant.trace))
             .empty()) {
      report.what = absl::StrCat("schedule, also interpreted: ", report.what);
      return;
    }
  }
}

}  // namespace

Case MakeGpuCase(uint64_t seed, int draws, int by_hand,
                 const std::string& target_text, PrimitiveCounts* counts) {
  Rng rng(seed);
  Case c;
  c.input_seed = seed;
  c.gpu_target = target_text;
  const TextProgram program = RandomTextProgram(rng, kOperatorShare);
  c.text = program.text;
  c.exact = program.exact;
  const auto parsed = ir::ParseFunction(c.text);
  const auto target = target::Parse(TargetOf(c));
  if (!parsed.ok() || !target.ok()) return c;
  const auto space = space::DesignSpace::Create(*parsed, *target);
  for (int i = 0; i < draws && space.ok(); ++i) {
    ++counts->tried["draw"];
    const auto candidate = (*space)->Sample(rng);
    if (!candidate.ok()) continue;
    const auto schedule = (*space)->Apply(*candidate);
    if (!schedule.ok()) continue;
    ++counts->accepted["draw"];
    c.traces.push_back(schedule->trace().Print());
  }
  for (int i = 0; i < by_hand; ++i) {
    c.traces.push_back(
        RandomGpuSchedule(*parsed, *target, rng, counts).trace().Print());
  }
  return c;
}

CaseReport CheckGpuCase(const Case& c, PrimitiveCounts* counts) {
  PrimitiveCounts unused;
  if (counts == nullptr) counts = &unused;
  const auto parsed = ir::ParseFunction(c.text);
  if (!parsed.ok()) {
    return {Verdict::kRefused, "parser", std::string(parsed.status().message()),
            ""};
  }
  const ir::PrimFuncPtr program = *parsed;
  const auto target = target::Parse(TargetOf(c));
  if (!target.ok()) return Differ({}, target.status().ToString());
  if (target->kind == "cuda") UseFakeCuda();
  Oclgrind();
  Expected want;
  if (auto report = InterpretExpected(c, *program, want)) return *report;

  std::vector<Variant> variants;
  const auto draft = space::DefaultSchedule(ir::IRModule{{program}}, *target,
                                            ir::FloatRule::kAsWritten);
  if (!draft.ok()) {
    return Differ({"default", nullptr, ""}, draft.status().ToString());
  }
  variants.push_back({"default", draft->module().functions[0],
                      draft->trace().Print(), /*keeps_floats=*/true});
  for (size_t i = 0; i < c.traces.size(); ++i) {
    Variant variant{absl::StrCat("trace ", i), nullptr, c.traces[i]};
    const auto trace = schedule::Trace::Parse(c.traces[i]);
    if (!trace.ok()) return Differ(variant, trace.status().ToString());
    const auto replayed = schedule::Replay(*trace, ir::IRModule{{program}});
    if (!replayed.ok()) continue;
    variant.program = replayed->module().functions[0];
    variants.push_back(std::move(variant));
  }
  std::vector<Variant> lowered;
  for (Variant& variant : variants) {
    ++counts->tried[SourceOf(variant)];
    const absl::Status status = Lowers(*variant.program, *target);
    if (status.ok()) {
      lowered.push_back(std::move(variant));
      continue;
    }
    const auto known = KnownRefusal(std::string(status.message()));
    if (!absl::IsInvalidArgument(status) || !known || variant.keeps_floats) {
      // A program that no schedule of a CPU makes legal either.
      if (absl::IsInvalidArgument(status) && variant.keeps_floats) {
        return {Verdict::kRefused, "default", std::string(status.message()),
                variant.trace};
      }
      return Differ(variant,
                    absl::StrCat("does not lower, ",
                                 absl::StatusCodeToString(status.code()), ": ",
                                 std::string(status.message())));
    }
    ++counts->tried[absl::StrCat(SourceOf(variant) == std::string(kRanDraws)
                                     ? kRefusedDraws
                                     : kRefusedByHand,
                                 *known)];
  }
  if (auto report = AddOracle(c, program, want)) return *report;
  if (lowered.empty()) return {};
  const auto artifact = CompileAll(lowered, *target);
  if (!artifact.ok()) {
    for (const Variant& variant : lowered) {
      const auto alone = CompileAll({variant}, *target);
      if (!alone.ok()) {
        return Differ(variant, absl::StrCat("does not compile: ",
                                            alone.status().ToString()));
      }
    }
    return Differ(lowered.front(),
                  absl::StrCat("the variants do not compile together: ",
                               artifact.status().ToString()));
  }
  CompiledLibrary library;
  if (const absl::Status status = library.Load(artifact->shared_object);
      !status.ok()) {
    return Differ(lowered.back(), std::string(status.message()));
  }
  for (size_t i = 0; i < lowered.size(); ++i) {
    auto report = RunVariant(c, *program, want, lowered[i], library,
                             absl::StrCat("f", i));
    if (report) {
      BlameSchedule(c, *program, want, lowered[i], *report);
      return *report;
    }
    ++counts->accepted[SourceOf(lowered[i])];
  }
  if (!target->is_simulated() || c.input_seed % kPtxShare != 0) return {};
  const auto gpu = target::Parse(absl::StrCat("cuda:", target->cpu));
  if (!gpu.ok()) return Differ(lowered[0], gpu.status().ToString());
  for (const Variant& variant : lowered) {
    const auto ptx = CompileAll({variant}, *gpu);
    if (!ptx.ok()) {
      return Differ(variant, absl::StrCat("PTX: ", ptx.status().ToString()));
    }
  }
  return {};
}

}  // namespace tilefarm::property

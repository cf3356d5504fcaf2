#include "compiler/target/isa.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <unordered_map>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "compiler/target/gpu.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

namespace tilefarm::target {
namespace {

// Those that code generation knows: compiler/runtime has a runtime for each of
// these triples but the GPUs', whose artifacts use that of their host part.
constexpr std::array<Kind, 8> kKinds = {{
    {"x86-64", "x86_64-unknown-linux-gnu", "x86-64"},
    {"aarch64", "aarch64-unknown-linux-gnu", "generic"},
    {"armv7", "armv7-unknown-linux-gnueabihf", "generic", "+neon"},
    {"riscv64", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c",
     "lp64d"},
    {"wasm32", "wasm32-unknown-unknown", "generic",
     "+simd128,+bulk-memory,+sign-ext,+nontrapping-fptoint", "",
     /*has_threads=*/false},
    // PTX 8.0 needs a driver of CUDA 12.0.
    {"cuda", "nvptx64-nvidia-cuda", "sm_80", "+ptx80", "",
     /*has_threads=*/false},
    {"opencl", "spir64-unknown-unknown", "generic", "", "",
     /*has_threads=*/false},
    {"sim", "nvptx64-nvidia-cuda", "sm_80", "+ptx80", "",
     /*has_threads=*/false},
}};

// The first row of the kind whose feature the target has, or that needs none.
struct VectorRegisters {
  std::string_view kind;
  std::string_view feature;
  int bits;
  int count;
};
constexpr std::array<VectorRegisters, 16> kVectorRegisters = {{
    {"x86-64", "avx512f", 512, 32},
    {"x86-64", "avx", 256, 16},
    {"x86-64", "", 128, 16},
    {"aarch64", "", 128, 32},
    {"armv7", "", 128, 16},
    // They have at least so many bits. Longer ones are not used to their end.
    {"riscv64", "zvl1024b", 1024, 32},
    {"riscv64", "zvl512b", 512, 32},
    {"riscv64", "zvl256b", 256, 32},
    {"riscv64", "zvl128b", 128, 32},
    {"riscv64", "zvl64b", 64, 32},
    {"riscv64", "zvl32b", 32, 32},
    // Without vector registers a vector of two lanes is only an unrolled loop.
    {"riscv64", "", 64, 32},
    // Locals without number; engines run them in the registers of x86-64.
    {"wasm32", "", 128, 16},
    // The widest access of a thread; 255 registers of 32 bits.
    {"cuda", "", 128, 63},
    {"opencl", "", 128, 63},
    {"sim", "", 128, 63},
}};

// Instruction sets that generated code or tensor intrinsics may depend on;
// system-level ones (invpcid, sgx, ...) do not matter to a schedule.
constexpr std::array<std::string_view, 19> kComputePrefixes = {
    "sse", "ssse", "avx",  "fma",  "f16c",    "amx",  "neon",
    "sve", "sme",  "bf16", "fp",   "dotprod", "i8mm", "zfh",
    "zve", "zvf",  "zvl",  "simd", "relaxed"};

void InitializeLlvm() {
  static const bool done = [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargetMCs();
    return true;
  }();
  (void)done;
}

std::unique_ptr<llvm::MCSubtargetInfo> MakeSubtarget(
    const std::string& triple, const std::string& cpu,
    const std::vector<std::string>& features) {
  InitializeLlvm();
  std::string error;
  const llvm::Target* target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return nullptr;
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target->createMCSubtargetInfo(triple, cpu, absl::StrJoin(features, ",")));
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

// The five nearest of the known names, for "did you mean".
std::string Nearest(std::string_view wanted, std::vector<std::string> known) {
  std::stable_sort(known.begin(), known.end(),
                   [&](const std::string& a, const std::string& b) {
                     return EditDistance(wanted, a) < EditDistance(wanted, b);
                   });
  if (known.size() > 5) known.resize(5);
  return absl::StrJoin(known, ", ");
}

// Of a feature that LLVM knows.
bool Has(const llvm::MCSubtargetInfo& subtarget, std::string_view name) {
  const auto all = subtarget.getAllProcessorFeatures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& f) {
    return std::string_view(f.Key) == name;
  });
  TF_CHECK(found != all.end());
  return subtarget.getFeatureBits()[found->Value];
}

}  // namespace

const Kind* FindKind(std::string_view name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

std::vector<std::string> KindNames() {
  std::vector<std::string> names = {"host"};
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

const Kind& HostKind() {
#if defined(__aarch64__)
  return *FindKind("aarch64");
#elif defined(__riscv)
  return *FindKind("riscv64");
#else
  return *FindKind("x86-64");
#endif
}

namespace {

// What does not depend on LLVM's tables.
absl::StatusOr<CpuFeatures> AskFamilies(
    const Kind& kind, const std::string& family,
    const std::vector<std::string>& features) {
  if (!OpenClLimits(family)) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown family '", family, "' of ",
                     std::string(kind.name), "; known: ", OpenClFamilies()));
  }
  if (!features.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("targets of ", std::string(kind.name),
                     " have no features, such as '", features[0], "'"));
  }
  CpuFeatures result;
  const auto* registers = absl::c_find_if(
      kVectorRegisters,
      [&](const VectorRegisters& row) { return row.kind == kind.name; });
  result.vector_bits = registers->bits;
  result.vector_registers = registers->count;
  result.capabilities =
      ResolveCapabilities(kind.name, [](std::string_view) { return false; });
  return result;
}

// By LLVM's tables, in about 100 us.
absl::StatusOr<CpuFeatures> AskLlvm(const Kind& kind, const std::string& cpu,
                                    const std::vector<std::string>& features) {
  CpuFeatures result;
  const std::string triple(kind.triple);
  // LLVM prints to stderr where it is asked for a cpu it does not know.
  const auto any = MakeSubtarget(triple, "", {});
  if (any == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("this build's LLVM has no code generator for ", triple));
  }
  if (!any->isCPUStringValid(cpu)) {
    std::vector<std::string> known;
    for (const auto& desc : any->getAllProcessorDescriptions()) {
      known.emplace_back(desc.Key);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("unknown model '", cpu, "' of ", std::string(kind.name),
                     "; near it: ", Nearest(cpu, std::move(known))));
  }
  const auto own = MakeSubtarget(triple, cpu, {});
  for (const std::string& feature : features) {
    const auto all = own->getAllProcessorFeatures();
    const bool found = std::any_of(all.begin(), all.end(), [&](const auto& f) {
      return feature.substr(1) == f.Key;
    });
    if (!found) {
      std::vector<std::string> known;
      for (const auto& f : all) known.emplace_back(f.Key);
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown feature '", feature, "' of ", std::string(kind.name),
          "; near it: ", Nearest(feature.substr(1), std::move(known))));
    }
  }
  std::vector<std::string> all_features = absl::StrSplit(
      absl::string_view(kind.baseline.data(), kind.baseline.size()), ',',
      absl::SkipEmpty());
  const std::vector<std::string> baseline = all_features;
  all_features.insert(all_features.end(), features.begin(), features.end());
  const auto changed = MakeSubtarget(triple, cpu, all_features);
  for (const std::string& feature : baseline) {
    if (!Has(*changed, std::string_view(feature).substr(1))) {
      return absl::InvalidArgumentError(
          absl::StrCat("target ", std::string(kind.name), " needs ", feature,
                       ": its calling convention or the runtime rests on it"));
    }
  }
  std::map<std::string, bool> differences;
  for (const auto& feature : own->getAllProcessorFeatures()) {
    const bool now = changed->getFeatureBits()[feature.Value];
    if (now != own->getFeatureBits()[feature.Value]) {
      differences[feature.Key] = now;
    }
  }
  for (const auto& [name, on] : differences) {
    result.differences.push_back((on ? "+" : "-") + name);
  }
  const auto has = [&](std::string_view name) { return Has(*changed, name); };
  const auto* registers =
      std::find_if(kVectorRegisters.begin(), kVectorRegisters.end(),
                   [&](const VectorRegisters& row) {
                     return row.kind == kind.name &&
                            (row.feature.empty() || has(row.feature));
                   });
  TF_CHECK(registers != kVectorRegisters.end());
  result.vector_bits = registers->bits;
  result.vector_registers = registers->count;
  result.capabilities = ResolveCapabilities(kind.name, has);
  return result;
}

// Answers that were given before. A farm knows some dozens of processors; a
// client may invent more.
struct KnownCpus {
  static constexpr size_t kMost = 1024;
  Mutex mutex;
  std::unordered_map<std::string, CpuFeatures> features ABSL_GUARDED_BY(mutex);
};

}  // namespace

absl::StatusOr<CpuFeatures> ResolveCpu(
    const Kind& kind, const std::string& cpu,
    const std::vector<std::string>& features) {
  static auto& known = *new KnownCpus;  // used until the process ends
  const std::string key = absl::StrCat(std::string(kind.name), "\n", cpu, "\n",
                                       absl::StrJoin(features, ","));
  {
    MutexLock lock(known.mutex);
    const auto found = known.features.find(key);
    if (found != known.features.end()) return found->second;
  }
  if (kind.name == "opencl") return AskFamilies(kind, cpu, features);
  TF_ASSIGN_OR_RETURN(const CpuFeatures answer, AskLlvm(kind, cpu, features));
  MutexLock lock(known.mutex);
  if (known.features.size() >= KnownCpus::kMost) known.features.clear();
  known.features.emplace(key, answer);
  return answer;
}

std::vector<std::string> ComputeExtensions(
    const std::string& triple, const std::string& cpu,
    const std::vector<std::string>& features) {
  std::vector<std::string> names;
  const auto subtarget = MakeSubtarget(triple, cpu, features);
  if (subtarget == nullptr) return names;
  for (const auto& feature : subtarget->getAllProcessorFeatures()) {
    const std::string_view name = feature.Key;
    const bool relevant =
        name == "v" ||  // RISC-V's
        std::any_of(
            kComputePrefixes.begin(), kComputePrefixes.end(),
            [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (relevant && subtarget->getFeatureBits()[feature.Value]) {
      names.emplace_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string HostCpu() { return llvm::sys::getHostCPUName().str(); }

std::vector<std::string> HostFeatures() {
  const auto host =
      MakeSubtarget(std::string(HostKind().triple), HostCpu(), {});
  std::vector<std::string> features;
  if (host == nullptr) return features;
  for (const auto& entry : llvm::sys::getHostCPUFeatures()) {
    const std::string name = entry.getKey().str();
    const auto all = host->getAllProcessorFeatures();
    // The host's list also has names that this LLVM does not know.
    if (std::any_of(all.begin(), all.end(),
                    [&](const auto& f) { return name == f.Key; })) {
      features.push_back((entry.getValue() ? "+" : "-") + name);
    }
  }
  std::sort(features.begin(), features.end());
  return features;
}

}  // namespace tilefarm::target

#include "compiler/target/isa.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

namespace tilefarm::target {
namespace {

// Those that code generation knows: compiler/runtime has a runtime for each of
// these triples.
constexpr std::array<Kind, 4> kKinds = {{
    {"x86-64", "x86_64-unknown-linux-gnu", "x86-64"},
    {"aarch64", "aarch64-unknown-linux-gnu", "generic"},
    {"armv7", "armv7-unknown-linux-gnueabihf", "generic", "+neon"},
    {"riscv64", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c",
     "lp64d"},
}};

// Instruction sets that generated code or tensor intrinsics may depend on;
// system-level ones (invpcid, sgx, ...) do not matter to a schedule.
constexpr std::array<std::string_view, 17> kComputePrefixes = {
    "sse",  "ssse", "avx",     "fma",  "f16c", "amx", "neon", "sve", "sme",
    "bf16", "fp",   "dotprod", "i8mm", "zfh",  "zve", "zvf",  "zvl"};

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

// RISC-V's vector registers have at least so many bits ("zvl256b"); 0: none.
int RiscvVectorBits(const llvm::MCSubtargetInfo& subtarget) {
  int bits = 0;
  for (const auto& feature : subtarget.getAllProcessorFeatures()) {
    const std::string_view name = feature.Key;
    int value = 0;
    if (name.starts_with("zvl") && name.ends_with("b") &&
        subtarget.getFeatureBits()[feature.Value] &&
        absl::SimpleAtoi(absl::string_view(name.data() + 3, name.size() - 4),
                         &value)) {
      bits = std::max(bits, value);
    }
  }
  return bits;
}

bool Has(const llvm::MCSubtargetInfo& subtarget, std::string_view name) {
  for (const auto& feature : subtarget.getAllProcessorFeatures()) {
    if (std::string_view(feature.Key) == name) {
      return subtarget.getFeatureBits()[feature.Value];
    }
  }
  return false;
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

absl::StatusOr<CpuFeatures> ResolveCpu(
    const Kind& kind, const std::string& cpu,
    const std::vector<std::string>& features) {
  CpuFeatures result{{}, 128, 32};
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
                       ": its calling convention rests on it"));
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
  if (kind.name == "x86-64") {
    const bool avx512 = Has(*changed, "avx512f");
    result.vector_bits = avx512 ? 512 : Has(*changed, "avx") ? 256 : 128;
    result.vector_registers = avx512 ? 32 : 16;
  } else if (kind.name == "armv7") {
    result.vector_registers = 16;
  } else if (kind.name == "riscv64") {
    // Without vector registers a vector of two lanes is only an unrolled loop.
    const int bits = RiscvVectorBits(*changed);
    result.vector_bits = bits > 0 ? std::min(bits, 1024) : 64;
  }
  return result;
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

// What LLVM knows about cpus and their features, without its types.
#ifndef TILEFARM_COMPILER_TARGET_ISA_H_
#define TILEFARM_COMPILER_TARGET_ISA_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/capability.h"

namespace tilefarm::target {

// One kind of target that this build generates code for: how it is written and
// what LLVM calls it. OpenCL's have no cpu of LLVM, but the families of gpu.h.
struct Kind {
  std::string_view name;         // "x86-64"
  std::string_view triple;       // "x86_64-unknown-linux-gnu"
  std::string_view default_cpu;  // the baseline
  // LLVM's features that every target of the kind has, because its ABI or the
  // runtime needs them: "+d,+m". They are added to a cpu that lacks them.
  std::string_view baseline = "";
  std::string_view abi = "";  // as LLVM names it; empty: the triple's
  bool has_threads = true;    // otherwise its targets have one core
};
// Null where there is no such kind.
const Kind* FindKind(std::string_view name);
// "host", "x86-64", "aarch64", ...
std::vector<std::string> KindNames();
// The kind of the machine this program was compiled for.
const Kind& HostKind();

struct CpuFeatures {
  // The requested features brought to normal form: everything in which the
  // resulting instruction set differs from the cpu's own, sorted by name.
  std::vector<std::string> differences;
  int vector_bits = 0;
  int vector_registers = 0;
  Capabilities capabilities;
};

// Applies `features` ("+a", "-b") to the cpu. InvalidArgument with near names
// where LLVM knows no such cpu or feature.
absl::StatusOr<CpuFeatures> ResolveCpu(
    const Kind& kind, const std::string& cpu,
    const std::vector<std::string>& features);

// The vector and matrix instruction sets that the cpu with these features has,
// by LLVM's names, sorted: whatever a schedule made for it may rely on.
std::vector<std::string> ComputeExtensions(
    const std::string& triple, const std::string& cpu,
    const std::vector<std::string>& features);

// This machine, as LLVM names it. Features are complete ("+a", "-b" for every
// known one), since virtual machines mask some of their cpu's.
std::string HostCpu();
std::vector<std::string> HostFeatures();

}  // namespace tilefarm::target

#endif  // TILEFARM_COMPILER_TARGET_ISA_H_

#include "worker/helper_environment.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/sanitizers.h"
#include "worker/control_group.h"

namespace tilefarm::worker {
namespace {

constexpr std::string_view kSanitizers[] = {"ASAN_OPTIONS", "LSAN_OPTIONS",
                                            "TSAN_OPTIONS", "UBSAN_OPTIONS"};

constexpr std::string_view kRunnerNames[] = {
    // Of programs in front of the runner.
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "SSH_AUTH_SOCK", "TMPDIR", "TZ",
    "USER",
    // Of the runner, and of the artifacts and libraries that it loads.
    kCandidateGroupsVariable, "LD_LIBRARY_PATH", "TILEFARM_CUDA_DRIVER",
    "TILEFARM_NUM_THREADS", "TILEFARM_OPENCL_DRIVER",
    "TILEFARM_POISON_WORKSPACE"};
constexpr std::string_view kRunnerPrefixes[] = {
    "CUDA_", "DNNL_",   "LC_",       "NVIDIA_", "OCL_ICD_",
    "OMP_",  "ONEDNN_", "OPENBLAS_", "OPENCL_", "POCL_"};

bool IsSanitizers(std::string_view name) {
  return TILEFARM_SANITIZED &&
         std::find(std::begin(kSanitizers), std::end(kSanitizers), name) !=
             std::end(kSanitizers);
}

bool IsRunners(std::string_view name) {
  return std::find(std::begin(kRunnerNames), std::end(kRunnerNames), name) !=
             std::end(kRunnerNames) ||
         std::any_of(
             std::begin(kRunnerPrefixes), std::end(kRunnerPrefixes),
             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

template <typename Condition>
std::vector<std::string> VariablesWith(Condition takes) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (takes(text.substr(0, text.find('=')))) variables.emplace_back(text);
  }
  return variables;
}

}  // namespace

std::vector<std::string> BuilderEnvironment() {
  return VariablesWith([](std::string_view name) {
    return IsSanitizers(name) || name == "TILEFARM_NVJITLINK";
  });
}

std::vector<std::string> RunnerEnvironment() {
  return VariablesWith([](std::string_view name) {
    return IsSanitizers(name) || IsRunners(name);
  });
}

}  // namespace tilefarm::worker

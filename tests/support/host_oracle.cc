#include "tests/support/host_oracle.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/oracle/oracle.h"
#include "worker/builder/analysis.h"
#include "worker/runner/verify.h"

namespace tilefarm::testing {

absl::StatusOr<HostOracle> HostOracle::Compile(
    const ir::PrimFuncPtr& function) {
  TF_ASSIGN_OR_RETURN(const target::Target host, target::Parse("host,cores=1"));
  TF_ASSIGN_OR_RETURN(const oracle::Artifact artifact,
                      oracle::Compile(*function, host));
  // A unique name, since dlopen returns the loaded library for a known path.
  std::string path = "/tmp/tilefarm-oracle-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return absl::UnavailableError("no temporary file");
  const std::string& bytes = artifact.shared_object;
  const bool written = write(file, bytes.data(), bytes.size()) ==
                       static_cast<ssize_t>(bytes.size());
  close(file);
  void* handle =
      written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  if (!written) return absl::UnavailableError("no room for a temporary file");
  if (handle == nullptr) return absl::InternalError(dlerror());
  HostOracle made;
  made.function_ = function;
  made.bounded_ = artifact.bounded;
  made.library_ = std::shared_ptr<void>(handle, [](void* h) { dlclose(h); });
  made.oracle_ = dlsym(handle, oracle::kSymbol);
  if (made.oracle_ == nullptr) return absl::InternalError(dlerror());
  return made;
}

absl::StatusOr<OracleResult> HostOracle::Run(
    std::span<const std::vector<std::byte>> inputs) const {
  OracleResult result;
  result.buffers.assign(inputs.begin(), inputs.end());
  const size_t count = function_->params.size();
  if (inputs.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat(inputs.size(), " buffers for ", count, " parameters"));
  }
  std::vector<std::vector<float>> narrow(count);
  result.bounds.resize(count);
  std::vector<void*> buffers, bounds;
  for (size_t i = 0; i < count; ++i) {
    const ir::BufferNode& param = *function_->params[i];
    const auto elements = static_cast<size_t>(param.num_elements());
    buffers.push_back(result.buffers[i].data());
    void* bound = nullptr;
    if (bounded_[i] && param.dtype == ir::DataType::Float(64)) {
      result.bounds[i].resize(elements);
      bound = result.bounds[i].data();
    } else if (bounded_[i]) {
      narrow[i].resize(elements);
      bound = narrow[i].data();
    }
    bounds.push_back(bound);
  }
  using Oracle = int (*)(void* const*, void* const*);
  const int code =
      reinterpret_cast<Oracle>(oracle_)(buffers.data(), bounds.data());
  if (code != 0) {
    return absl::InternalError(absl::StrCat("the oracle returned ", code));
  }
  for (size_t i = 0; i < count; ++i) {
    if (narrow[i].empty()) continue;
    result.bounds[i].assign(narrow[i].begin(), narrow[i].end());
  }
  return result;
}

std::string DifferenceFromOracle(const ir::PrimFunc& function,
                                 const OracleResult& oracle,
                                 std::span<const std::vector<std::byte>> got,
                                 double spread, double* largest) {
  const absl::StatusOr<worker::ProgramSpec> spec =
      worker::AnalyzeProgram(function);
  if (!spec.ok()) return std::string(spec.status().message());
  for (uint32_t i = 0; i < got.size(); ++i) {
    const std::vector<double>& bounds = oracle.bounds[i];
    const std::vector<float> narrow(bounds.begin(), bounds.end());
    const bool wide = function.params[i]->dtype == ir::DataType::Float(64);
    const void* used = wide ? static_cast<const void*>(bounds.data())
                            : static_cast<const void*>(narrow.data());
    if (bounds.empty()) used = nullptr;
    const double slack = used == nullptr ? 0
                                         : spread * worker::RootMeanSquare(
                                                        spec->buffers[i], used);
    const worker::Comparison comparison =
        worker::Compare(spec->buffers[i], i, oracle.buffers[i].data(), used,
                        slack, got[i].data());
    if (!comparison.equal) return comparison.error;
    if (largest != nullptr) {
      *largest = std::max(*largest, comparison.max_rel_error);
    }
  }
  return "";
}

}  // namespace tilefarm::testing

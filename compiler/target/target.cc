#include "compiler/target/target.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "compiler/target/isa.h"

namespace tilefarm::target {

std::string Target::Key() const {
  std::string key = kind;
  if (!cpu.empty()) absl::StrAppend(&key, ":", cpu);
  absl::StrAppend(&key, ",cores=", cores);
  for (const std::string& feature : features) {
    absl::StrAppend(&key, ",", feature);
  }
  return key;
}

Target Target::HostPart() const {
  if (!is_gpu()) return *this;
  const absl::StatusOr<Target> host =
      ParseKey(absl::StrCat(std::string(HostKind().name), ",cores=1"));
  TF_CHECK(host.ok());
  return *host;
}

std::string Target::LlvmFeatures() const {
  return absl::StrJoin(features, ",");
}

std::string DeviceModel(std::string_view brand, std::string_view cpu,
                        const std::vector<std::string>& features,
                        const CacheSizes& caches) {
  return absl::StrCat("brand=", std::string(brand), ";cpu=", std::string(cpu),
                      ";features=", absl::StrJoin(features, ","),
                      ";l1=", caches.l1_bytes, ";l2=", caches.l2_bytes,
                      ";l3=", caches.l3_bytes);
}

Match Compare(const Target& recorded, const Target& wanted) {
  if (recorded.kind != wanted.kind) return Match::kNone;
  const bool same_cpu = recorded.cpu == wanted.cpu;
  if (same_cpu && recorded.features == wanted.features) return Match::kExact;
  // Sizes that one model of GPU has another may lack.
  if (wanted.is_gpu()) return Match::kNone;
  // A schedule may use every vector or matrix instruction of its own device;
  // the wanted one must have them all, whatever its name.
  const std::vector<std::string> needed =
      ComputeExtensions(recorded.triple, recorded.cpu, recorded.features);
  const std::vector<std::string> there =
      ComputeExtensions(wanted.triple, wanted.cpu, wanted.features);
  if (!std::includes(there.begin(), there.end(), needed.begin(),
                     needed.end())) {
    return Match::kNone;
  }
  return same_cpu ? Match::kMicroarch : Match::kFamily;
}

}  // namespace tilefarm::target

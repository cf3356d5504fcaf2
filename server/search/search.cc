#include "server/search/search.h"

#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace tilefarm::search {

std::string CandidateId(const std::string& task_id,
                        const std::string& scheduled_hash,
                        const std::string& fingerprint) {
  return Sha256Hex(
      absl::StrCat(task_id, "\n", scheduled_hash, "\n", fingerprint));
}

std::string TaskId(const std::string& workload_hash,
                   const std::string& target_key) {
  return Sha256Hex(absl::StrCat(workload_hash, "\n", target_key));
}

}  // namespace tilefarm::search

// Artifacts of comparisons that the server has sent, on disk and checked.
#ifndef TILEFARM_WORKER_ARTIFACT_CACHE_H_
#define TILEFARM_WORKER_ARTIFACT_CACHE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace tilefarm::worker {

// Files named by their SHA-256 in a directory that no other process uses.
// Beyond a total size the ones that were not used for longest are deleted.
// Thread-safe.
class ArtifactCache {
 public:
  using Bytes = std::shared_ptr<const std::string>;
  using Fetch = std::function<absl::StatusOr<std::string>()>;

  // An empty directory: nothing is kept on disk.
  ArtifactCache(std::string directory, uint64_t most_bytes)
      : directory_(std::move(directory)), most_bytes_(most_bytes) {}

  // The artifact: in use by somebody, from a file whose bytes have the digest,
  // or fetched. One artifact is fetched once at a time. DataLoss: what was
  // fetched has another digest; errors of `fetch`. An artifact that cannot be
  // kept is returned all the same.
  absl::StatusOr<Bytes> Get(const std::string& sha256, const Fetch& fetch);

 private:
  Bytes InUse(const std::string& sha256) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null: there is no such file, or it is damaged and was removed.
  Bytes ReadFile(const std::string& sha256) const;
  void Keep(const std::string& sha256, const std::string& bytes) const;
  void DeleteOld() const;

  const std::string directory_;
  const uint64_t most_bytes_;
  Mutex mutex_;
  CondVar fetched_;
  std::map<std::string, std::weak_ptr<const std::string>> in_use_
      ABSL_GUARDED_BY(mutex_);
  std::map<std::string, bool> fetching_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_ARTIFACT_CACHE_H_

// Artifacts of candidates that were built a while ago: the fastest of them are
// measured again, several times.
#ifndef TILEFARM_WORKER_BUILD_CACHE_H_
#define TILEFARM_WORKER_BUILD_CACHE_H_

#include <cstddef>
#include <list>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "worker/builder_protocol.h"

namespace tilefarm::worker {

// The most recently used successful builds, of no more than so many bytes
// together. A build is a function of its request (builds are deterministic), so
// what is here is what a builder would make. Thread-safe.
class BuildCache {
 public:
  explicit BuildCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Nullopt: not here, or a request without the hash that tells programs apart.
  std::optional<BuildReply> Find(const BuildRequest& request);
  // Ignored where the build failed or the request has no hash.
  void Add(const BuildRequest& request, const BuildReply& reply);

 private:
  struct Entry {
    std::string key;
    BuildReply reply;
    size_t bytes() const { return key.size() + reply.artifact.size(); }
  };

  const size_t most_bytes_;
  Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // most recent first
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_BUILD_CACHE_H_

// A cache of built artifacts, because the fastest candidates are measured again
// several times.
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

// The most recently used successful builds, up to a total size. Builds are
// deterministic, so a cached artifact is what a builder would make.
// Thread-safe.
class BuildCache {
 public:
  explicit BuildCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Nullopt: not cached, or the request has no program hash.
  std::optional<BuildReply> Find(const BuildRequest& request);
  // Ignored if the build failed or the request has no hash.
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

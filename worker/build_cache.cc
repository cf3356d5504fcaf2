#include "worker/build_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilefarm::worker {
namespace {

// Everything except the memory limit, which decides only whether there is a
// reply. Lengths separate the parts.
std::string KeyOf(const BuildRequest& request) {
  return absl::StrCat(request.reference ? "reference " : "candidate ",
                      request.scheduled_hash.size(), " ", request.target.size(),
                      " ", request.trace.size(), " ", request.scheduled_hash,
                      request.target, request.trace, request.program);
}

}  // namespace

std::optional<BuildReply> BuildCache::Find(const BuildRequest& request) {
  if (request.scheduled_hash.empty()) return std::nullopt;
  const std::string key = KeyOf(request);
  MutexLock lock(mutex_);
  const auto found =
      std::find_if(entries_.begin(), entries_.end(),
                   [&](const Entry& entry) { return entry.key == key; });
  if (found == entries_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front().reply;
}

void BuildCache::Add(const BuildRequest& request, const BuildReply& reply) {
  if (request.scheduled_hash.empty() || reply.status != BuildStatus::kOk) {
    return;
  }
  Entry entry = {KeyOf(request), reply};
  MutexLock lock(mutex_);
  const auto same =
      std::find_if(entries_.begin(), entries_.end(),
                   [&](const Entry& other) { return other.key == entry.key; });
  if (same != entries_.end()) {
    bytes_ -= same->bytes();
    entries_.erase(same);
  }
  bytes_ += entry.bytes();
  entries_.push_front(std::move(entry));
  while (bytes_ > most_bytes_) {
    bytes_ -= entries_.back().bytes();
    entries_.pop_back();
  }
}

}  // namespace tilefarm::worker

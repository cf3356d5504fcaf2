// Results without an acknowledgement of the server, on disk, so that they
// survive the end of the stream, of the server and of this worker.
//
//   DIR/lock                              held while a worker uses DIR
//   DIR/spool/<database uuid>/<number>-<lease id>.result
//
// A file is 64 hexadecimal digits, the SHA-256 of what follows: the Result
// message as serialised. Numbers grow in the order of the results. A file
// that does not match its digest is renamed to *.corrupt and reported. While
// the disk is full, results are kept in memory.
#ifndef TILEFARM_WORKER_SPOOL_H_
#define TILEFARM_WORKER_SPOOL_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "proto/tilefarm/v1/farm.pb.h"

namespace tilefarm::worker {

// Thread-safe.
class Spool {
 public:
  // Makes the directories and reads existing results. FailedPrecondition:
  // another worker uses `directory`.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(
      const std::string& directory);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // OK: the result is durable. Otherwise it is kept only in memory, and the
  // error says why.
  absl::Status Put(const std::string& database_uuid, const v1::Result& result);
  // Removes the lease's results for that database, and returns their
  // candidates.
  std::vector<std::string> Acknowledge(const std::string& database_uuid,
                                       const std::string& lease_id);
  // The results for one database, oldest first.
  std::vector<std::shared_ptr<const v1::Result>> Pending(
      const std::string& database_uuid) const;

  // False after a result that could not be written, until Retry succeeds.
  bool writable() const;
  // Writes the results that are only in memory, and a test file that it removes
  // again. Must not run concurrently with Put.
  absl::Status Retry();

 private:
  struct Entry {
    std::string path;  // empty: only in memory
    std::shared_ptr<const v1::Result> result;
  };
  Spool(std::string directory, int lock_fd)
      : directory_(std::move(directory)), lock_fd_(lock_fd) {}
  absl::Status Load();
  void LoadFile(const std::string& database, const std::filesystem::path& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteEntry(const std::string& database, uint64_t number,
                          const v1::Result& result, std::string* path) const;

  const std::string directory_;
  const int lock_fd_;
  mutable Mutex mutex_;
  bool writable_ ABSL_GUARDED_BY(mutex_) = true;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  // By directory of the database, then by number.
  std::map<std::string, std::map<uint64_t, Entry>> entries_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_SPOOL_H_

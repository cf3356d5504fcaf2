#include "database/merge.h"

#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/sqlite_open.h"
#include "database/store.h"

namespace tilefarm::database {
namespace {

namespace fs = std::filesystem;

// The device models of stored records by candidate, of one workload and target
// at a time: the records of a database come in their order.
class StoredModels {
 public:
  explicit StoredModels(const Store& store) : store_(store) {}

  // Whether the stored record of the candidate has another device model.
  absl::StatusOr<bool> Differ(const Record& record) {
    auto found = models_.find(record.candidate_id);
    if (workload_ != record.workload_hash || target_ != record.target ||
        found == models_.end()) {
      TF_RETURN_IF_ERROR(Load(record));
      found = models_.find(record.candidate_id);
    }
    // One that is not there is of another workload or target.
    return found == models_.end() || found->second != record.device_model;
  }

 private:
  absl::Status Load(const Record& record) {
    workload_ = record.workload_hash;
    target_ = record.target;
    models_.clear();
    TF_ASSIGN_OR_RETURN(std::vector<Record> stored,
                        store_.FindRecords(workload_, target_));
    for (Record& one : stored) {
      models_[std::move(one.candidate_id)] = std::move(one.device_model);
    }
    return absl::OkStatus();
  }

  const Store& store_;
  std::string workload_, target_;
  std::map<std::string, std::string> models_;
};

absl::Status CopyRecords(const Store& source, Store& out, MergeFacts& facts) {
  StoredModels models(out);
  int64_t last = 0;
  while (true) {
    TF_ASSIGN_OR_RETURN(const std::vector<Record> page,
                        source.NextRecords("", last));
    if (page.empty()) return absl::OkStatus();
    last = page.back().id;
    TF_ASSIGN_OR_RETURN(const std::vector<bool> added, out.AddRecords(page));
    for (size_t i = 0; i < page.size(); ++i) {
      if (added[i]) {
        ++facts.added;
        continue;
      }
      ++facts.known;
      TF_ASSIGN_OR_RETURN(const bool other, models.Differ(page[i]));
      if (other) ++facts.other_model;
    }
  }
}

}  // namespace

absl::StatusOr<MergeFacts> Merge(const std::vector<std::string>& from,
                                 const std::string& to) {
  std::error_code error;
  const bool existed = fs::exists(to, error);
  for (const std::string& path : from) {
    if (path == to || (existed && fs::equivalent(path, to, error))) {
      return absl::InvalidArgumentError(absl::StrCat(
          path,
          " is the output as well: leave it out of the sources, its "
          "records stay where they are"));
    }
  }
  // All of them, before anything is written.
  std::vector<std::unique_ptr<Store>> sources;
  for (const std::string& path : from) {
    absl::StatusOr<std::unique_ptr<Store>> store =
        Store::Open(path, Store::Mode::kReadOnly);
    TF_RETURN_IF_ERROR(Named(path, store.status()));
    sources.push_back(*std::move(store));
  }
  absl::StatusOr<std::unique_ptr<Store>> out =
      Store::Open(to, Store::Mode::kReadWrite);
  TF_RETURN_IF_ERROR(Named(to, out.status()));
  MergeFacts facts;
  absl::Status status;
  for (size_t i = 0; i < sources.size() && status.ok(); ++i) {
    status = Named(from[i], CopyRecords(*sources[i], **out, facts));
  }
  if (status.ok()) return facts;
  if (!existed) {
    out->reset();
    for (const char* part : {"", "-wal", "-shm", ".lock"}) {
      fs::remove(absl::StrCat(to, part), error);
    }
  }
  return status;
}

}  // namespace tilefarm::database

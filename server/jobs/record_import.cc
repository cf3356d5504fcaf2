#include "server/jobs/record_import.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "compiler/lower/check_program.h"
#include "compiler/target/target.h"

namespace tilefarm::jobs {
namespace {

// A group is stored at once. Each commit writes every page that it changed, and
// the index of candidates has a random page for nearly every record, so large
// groups write less. The server stores no results meanwhile: about 0.2 s.
constexpr size_t kMostRecords = 4096;
constexpr size_t kMostBytes = 32 << 20;
// Number of programs that are remembered as checked.
constexpr size_t kMaxPrograms = 1024;

}  // namespace

absl::Status RecordImport::Check(database::Record& record) {
  auto known = hash_of_program_.find(record.program);
  if (known == hash_of_program_.end()) {
    TF_ASSIGN_OR_RETURN(const ir::PrimFuncPtr function,
                        ir::ParseFunction(record.program));
    TF_RETURN_IF_ERROR(lower::CheckProgram(ir::IRModule{{function}}));
    if (hash_of_program_.size() >= kMaxPrograms) hash_of_program_.clear();
    known =
        hash_of_program_.emplace(record.program, ir::WorkloadHash(*function))
            .first;
  }
  if (known->second != record.workload_hash) {
    ++variants_;
    record.verified = false;
    for (database::Record& later : record.remeasured) later.verified = false;
  }
  return CheckTarget(record.target);
}

absl::Status RecordImport::CheckTarget(const std::string& key) {
  if (!checked_target_.empty() && key == checked_target_) {
    return absl::OkStatus();
  }
  TF_ASSIGN_OR_RETURN(const target::Target target, target::ParseKey(key));
  if (target.Key() != key) {
    return absl::InvalidArgumentError(absl::StrCat(
        "target '", key, "' is not a key; its key is '", target.Key(), "'"));
  }
  checked_target_ = key;
  return absl::OkStatus();
}

absl::Status RecordImport::Add(std::string_view line) {
  ++line_;
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  if (std::all_of(line.begin(), line.end(), blank)) return absl::OkStatus();
  auto record = database::RecordFromJson(line);
  absl::Status status = record.status();
  if (status.ok()) status = Check(*record);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line_, ": ", status.message()));
  }
  record->id = 0;
  group_.push_back(*std::move(record));
  group_bytes_ += line.size();
  return group_.size() < kMostRecords && group_bytes_ < kMostBytes
             ? absl::OkStatus()
             : Flush();
}

absl::Status RecordImport::Flush() {
  if (group_.empty()) return absl::OkStatus();
  TF_ASSIGN_OR_RETURN(const std::vector<bool> added, store_.AddRecords(group_));
  for (const bool one : added) ++(one ? added_ : known_);
  group_.clear();
  group_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status RecordImport::Finish() {
  TF_RETURN_IF_ERROR(Flush());
  if (added_ + known_ > 0 || line_ == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "there is no record in it: an export has one on each line");
}

}  // namespace tilefarm::jobs

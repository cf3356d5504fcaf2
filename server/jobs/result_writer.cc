#include "server/jobs/result_writer.h"

#include <pthread.h>

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/log.h"

namespace tilefarm::jobs {
namespace {

using farm::Completion;
using farm::Purpose;

void LogError(const std::string& text) {
  Log(LogLevel::kError, "results", text);
}

// After every so many consecutive failures, the group is stored in parts, to
// find out whether a single result causes them.
constexpr int kApartEvery = 4;
// A result is given up after it has failed alone so often while the store
// accepted other writes.
constexpr int kMostFailures = 3;
// Key of a blob that is written to test the store.
constexpr char kProbeKey[] = "probe";

// Whether the error is the store's own; otherwise the store refuses the record.
bool IsOfTheStore(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

// Adds "unsteady" to the JSON object of the device's state.
void MarkUnsteady(std::string& device_state) {
  auto json = ParseJson<nlohmann::ordered_json>(device_state);
  if (!json.is_object()) json = nlohmann::ordered_json::object();
  json["unsteady"] = true;
  device_state = json.dump();
}

}  // namespace

database::Record MakeRecord(const Completion& completion,
                            absl::Time recorded_at) {
  const farm::WorkItem& item = completion.item;
  const farm::Measurement& measured = completion.measurement;
  database::Record record;
  record.candidate_id =
      item.recorded_as.empty() ? item.candidate_id : item.recorded_as;
  record.workload_hash = item.workload_hash;
  record.program = item.program;
  record.target = item.target.Key();
  record.trace = item.trace;
  record.device = completion.device_id;
  record.device_model = completion.device_model;
  record.status = measured.status;
  record.error = measured.error;
  record.seconds = measured.seconds;
  record.median_seconds = measured.median_seconds;
  record.ci_low_seconds = measured.ci_low_seconds;
  record.ci_high_seconds = measured.ci_high_seconds;
  record.stopped_early = measured.stopped_early;
  record.emulated = measured.emulated;
  record.verified = measured.verified;
  record.max_abs_error = measured.max_abs_error;
  record.max_rel_error = measured.max_rel_error;
  record.compile_seconds = measured.compile_seconds;
  record.protocol.cold_cache = measured.cold_cache;
  record.protocol.cores = measured.cores;
  record.protocol.layout = measured.layout;
  record.isolation = measured.isolation;
  record.device_state = measured.device_state;
  if (completion.unsteady) MarkUnsteady(record.device_state);
  record.fingerprint = measured.fingerprint;
  record.code_digest = measured.code_digest;
  record.job_id = item.job;
  record.model_score = item.model_score;
  record.sequence = item.sequence;
  record.recorded_at = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", recorded_at,
                                        absl::UTCTimeZone());
  return record;
}

std::string BaselineKey(const std::string& task_id) {
  return absl::StrCat("unscheduled/", task_id);
}

ResultWriter::ResultWriter(database::Store& store, farm::Farm& farm,
                           RecordListener& listener,
                           const farm::Timeouts& timeouts, Clock& clock)
    : store_(store),
      farm_(farm),
      listener_(listener),
      timeouts_(timeouts),
      clock_(clock),
      thread_([this] { Main(); }) {}

ResultWriter::~ResultWriter() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void ResultWriter::OnResult(Completion completion) {
  MutexLock lock(mutex_);
  queue_.push_back(std::move(completion));
  changed_.NotifyAll();
}

std::string ResultWriter::problem() const {
  MutexLock lock(mutex_);
  return problem_;
}

WriterFigures ResultWriter::figures() const {
  MutexLock lock(mutex_);
  WriterFigures figures = figures_;
  figures.waiting = static_cast<int64_t>(queue_.size());
  return figures;
}

void ResultWriter::NoteStored(const absl::Status& status) {
  std::string problem;
  if (!status.ok() && IsOfTheStore(status)) {
    problem = absl::StrCat(
        "results cannot be stored: ", std::string(status.message()),
        "; workers keep them, and storing is tried again every ",
        absl::FormatDuration(timeouts_.commit_retry));
  }
  {
    MutexLock lock(mutex_);
    if (problem_ == problem) return;
    problem_ = problem;
  }
  if (problem.empty()) {
    Log(LogLevel::kInfo, "results", "results are stored again");
  } else {
    LogError(problem);
  }
}

void ResultWriter::Main() {
  pthread_setname_np(pthread_self(), "result-writer");
  // Results are acknowledged when they are durable, so the workers keep copies.
  std::vector<Completion> group;
  int failures = 0;          // in a row
  bool some_stored = false;  // at the latest attempt
  while (true) {
    bool stopping = false;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && group.empty() && !stopping_) {
        changed_.Wait(mutex_);
      }
      if (queue_.empty() && group.empty()) return;
      const absl::Duration deadline =
          clock_.Monotonic() + timeouts_.commit_delay;
      while (!stopping_ && group.empty() &&
             static_cast<int>(queue_.size()) < timeouts_.commit_max) {
        const absl::Duration left = deadline - clock_.Monotonic();
        if (left <= absl::ZeroDuration()) break;
        changed_.WaitFor(mutex_, left);
      }
      while (!queue_.empty() &&
             static_cast<int>(group.size()) < timeouts_.commit_max) {
        group.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      stopping = stopping_;
    }
    const absl::Duration began = clock_.Monotonic();
    pulse_.Beat(began);
    const int64_t stored_before = stored_;
    group = Commit(
        std::move(group),
        /*apart=*/some_stored || failures % kApartEvery == kApartEvery - 1);
    pulse_.Rest();
    some_stored = !group.empty() && stored_ > stored_before;
    failures = group.empty() ? 0 : failures + 1;
    MutexLock lock(mutex_);
    figures_.commit_seconds.Observe(
        absl::ToDoubleSeconds(clock_.Monotonic() - began));
    if (group.empty()) continue;
    ++figures_.failures;
    if (stopping) {
      group.clear();  // queued results still get one attempt
      continue;
    }
    const absl::Duration again = clock_.Monotonic() + timeouts_.commit_retry;
    while (!stopping_ && clock_.Monotonic() < again) {
      changed_.WaitFor(mutex_, again - clock_.Monotonic());
    }
  }
}

std::vector<Completion> ResultWriter::Commit(std::vector<Completion> group,
                                             bool apart) {
  std::set<const Completion*> again;
  std::vector<const Completion*> trials;
  // Good canaries are placed before the records of their group ...
  for (const Completion& completion : group) {
    switch (completion.item.purpose) {
      case Purpose::kCanary:
        if (completion.trusted) FinishCanary(completion);
        break;
      case Purpose::kTrial:
        trials.push_back(&completion);
        break;
      case Purpose::kBaseline:
        if (!CommitBaseline(completion)) again.insert(&completion);
        break;
      case Purpose::kMeasure:
      case Purpose::kFinalist:
      case Purpose::kRemeasure:
        if (!CommitMeasure(completion)) again.insert(&completion);
        break;
      case Purpose::kCompare:
        listener_.OnCompared(completion);
        farm_.Committed(completion.item.candidate_id, /*superseded=*/false);
        break;
    }
  }
  again.merge(CommitRecords(trials, apart));
  std::vector<Completion> left;
  for (Completion& completion : group) {
    // ... and bad ones after them, so that these records are suspect.
    const bool bad_canary =
        completion.item.purpose == Purpose::kCanary && !completion.trusted;
    if (bad_canary && left.empty()) {
      FinishCanary(completion);
    } else if (bad_canary || again.contains(&completion)) {
      left.push_back(std::move(completion));
    }
  }
  return left;
}

std::set<const Completion*> ResultWriter::CommitRecords(
    std::span<const Completion* const> group, bool apart) {
  if (group.empty()) return {};
  std::vector<database::Record> records;
  for (const Completion* completion : group) {
    records.push_back(MakeRecord(*completion, clock_.Now()));
  }
  const auto added = store_.AddRecords(records);
  NoteStored(added.status());
  if (added.ok()) {
    ++stored_;
    std::vector<farm::Farm::Commit> commits;
    for (size_t i = 0; i < group.size(); ++i) {
      listener_.OnRecorded(*group[i], records[i], (*added)[i]);
      commits.push_back({group[i]->item.candidate_id, !(*added)[i]});
    }
    farm_.Committed(commits);
    for (const Completion* completion : group) {
      listener_.OnAcknowledged(completion->item);
    }
    return {};
  }
  if (group.size() == 1) {
    if (!GiveUp(*group[0], records[0], added.status())) return {group[0]};
    Finish(*group[0], records[0], /*added=*/false);
    return {};
  }
  if (IsOfTheStore(added.status()) && !apart) {
    return {group.begin(), group.end()};
  }
  const size_t half = group.size() / 2;
  auto again = CommitRecords(group.first(half), apart);
  again.merge(CommitRecords(group.subspan(half), apart));
  return again;
}

bool ResultWriter::GiveUp(const Completion& completion,
                          const database::Record& record,
                          const absl::Status& status) {
  if (IsOfTheStore(status)) {
    // If the store accepts other data of the same size, the result is at fault.
    const bool well =
        store_.PutBlob(kProbeKey, database::RecordToJson(record)).ok() &&
        store_.PutBlob(kProbeKey, "").ok();
    if (!well) return false;
    if (++failed_[completion.item.candidate_id] < kMostFailures) return false;
  }
  failed_.erase(completion.item.candidate_id);
  LogError(absl::StrCat(
      "the result of candidate ", completion.item.candidate_id, " on ",
      completion.device_id, " is not stored: ", status.ToString()));
  return true;
}

bool ResultWriter::CommitBaseline(const Completion& completion) {
  const database::Record record = MakeRecord(completion, clock_.Now());
  const absl::Status stored = store_.PutBlob(
      BaselineKey(completion.item.task_id), database::RecordToJson(record));
  NoteStored(stored);
  if (stored.ok()) ++stored_;
  if (!stored.ok() && !GiveUp(completion, record, stored)) return false;
  Finish(completion, record, stored.ok());
  return true;
}

bool ResultWriter::CommitMeasure(const Completion& completion) {
  const database::Record record = MakeRecord(completion, clock_.Now());
  auto added = store_.AddRecords({&record, 1});
  absl::Status status = added.status();
  if (added.ok() && !added->front()) {
    // The candidate has a record: the result becomes one more row of it.
    const auto known = store_.RecordOf(record.candidate_id);
    status =
        known.ok() ? store_.AddMeasurement(*known, record) : known.status();
  }
  NoteStored(status);
  if (status.ok()) ++stored_;
  if (!status.ok() && !GiveUp(completion, record, status)) return false;
  Finish(completion, record, status.ok());
  return true;
}

void ResultWriter::FinishCanary(const Completion& completion) {
  listener_.OnCanary(completion);
  farm_.Committed(completion.item.candidate_id, /*superseded=*/false);
}

void ResultWriter::Finish(const Completion& completion,
                          const database::Record& record, bool added) {
  listener_.OnRecorded(completion, record, added);
  farm_.Committed(completion.item.candidate_id, !added);
  listener_.OnAcknowledged(completion.item);
}

}  // namespace tilefarm::jobs

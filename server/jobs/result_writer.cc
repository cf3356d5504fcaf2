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

// Whether the same write may succeed later; otherwise the record itself is
// what the store refuses.
bool MayRetry(const absl::Status& status) {
  return status.code() != absl::StatusCode::kInvalidArgument;
}

// Says so in the JSON object of the device's state.
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
  if (!status.ok() && MayRetry(status)) {
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
  while (true) {
    std::vector<Completion> group;
    bool stopping = false;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(mutex_);
      if (queue_.empty()) return;
      const absl::Duration deadline =
          clock_.Monotonic() + timeouts_.commit_delay;
      while (!stopping_ &&
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
    // Not acknowledged until it is durable: the workers keep their copies.
    while (true) {
      const absl::Duration began = clock_.Monotonic();
      pulse_.Beat(began);
      group = Commit(std::move(group));
      pulse_.Rest();
      MutexLock lock(mutex_);
      figures_.commit_seconds.Observe(
          absl::ToDoubleSeconds(clock_.Monotonic() - began));
      if (!group.empty()) ++figures_.failures;
      if (group.empty() || stopping) break;
      if (!stopping_) changed_.WaitFor(mutex_, timeouts_.commit_retry);
      stopping = stopping_;
    }
  }
}

std::vector<Completion> ResultWriter::Commit(std::vector<Completion> group) {
  std::vector<Completion> left;
  std::vector<const Completion*> trials;
  // Good canaries do not speak about what came with them ...
  for (const Completion& completion : group) {
    if (completion.item.purpose == Purpose::kCanary && completion.trusted) {
      FinishCanary(completion);
    }
  }
  for (Completion& completion : group) {
    switch (completion.item.purpose) {
      case Purpose::kTrial:
        trials.push_back(&completion);
        break;
      case Purpose::kBaseline:
        if (!CommitBaseline(completion)) left.push_back(std::move(completion));
        break;
      case Purpose::kMeasure:
      case Purpose::kFinalist:
      case Purpose::kRemeasure:
        if (!CommitMeasure(completion)) left.push_back(std::move(completion));
        break;
      case Purpose::kCanary:
        break;
    }
  }
  if (!CommitRecords(trials)) {
    for (Completion& completion : group) {
      if (completion.item.purpose == Purpose::kTrial) {
        left.push_back(std::move(completion));
      }
    }
  }
  // ... and bad ones speak about all that came before them.
  for (Completion& completion : group) {
    if (completion.item.purpose != Purpose::kCanary || completion.trusted) {
      continue;
    }
    if (left.empty()) {
      FinishCanary(completion);
    } else {
      left.push_back(std::move(completion));
    }
  }
  return left;
}

bool ResultWriter::CommitRecords(const std::vector<const Completion*>& group) {
  if (group.empty()) return true;
  std::vector<database::Record> records;
  for (const Completion* completion : group) {
    records.push_back(MakeRecord(*completion, clock_.Now()));
  }
  const auto added = store_.AddRecords(records);
  NoteStored(added.status());
  if (added.ok()) {
    std::vector<farm::Farm::Commit> commits;
    for (size_t i = 0; i < group.size(); ++i) {
      listener_.OnRecorded(group[i]->item, records[i], (*added)[i]);
      commits.push_back({group[i]->item.candidate_id, !(*added)[i]});
    }
    farm_.Committed(commits);
    for (const Completion* completion : group) {
      listener_.OnAcknowledged(completion->item);
    }
    return true;
  }
  if (MayRetry(added.status())) return false;
  LogError(absl::StrCat("commit of ", group.size(),
                        " results failed: ", added.status().ToString()));
  if (group.size() == 1) {
    // The store will never take it; the worker need not keep it.
    Finish(*group[0], records[0], /*added=*/false);
    return true;
  }
  // One of them is refused; those already stored are found so, not added
  // again.
  bool all = true;
  for (const Completion* completion : group) all &= CommitRecords({completion});
  return all;
}

bool ResultWriter::CommitBaseline(const Completion& completion) {
  const database::Record record = MakeRecord(completion, clock_.Now());
  const absl::Status stored = store_.PutBlob(
      BaselineKey(completion.item.task_id), database::RecordToJson(record));
  NoteStored(stored);
  if (!stored.ok()) {
    if (MayRetry(stored)) return false;
    LogError(absl::StrCat("commit failed: ", stored.ToString()));
  }
  Finish(completion, record, stored.ok());
  return true;
}

bool ResultWriter::CommitMeasure(const Completion& completion) {
  const database::Record record = MakeRecord(completion, clock_.Now());
  auto added = store_.AddRecords({&record, 1});
  absl::Status status = added.status();
  if (added.ok() && !added->front()) {
    // Measured before: one more row of that record.
    const auto known = store_.RecordOf(record.candidate_id);
    status =
        known.ok() ? store_.AddMeasurement(*known, record) : known.status();
  }
  NoteStored(status);
  if (!status.ok()) {
    if (MayRetry(status)) return false;
    LogError(absl::StrCat("commit failed: ", status.ToString()));
  }
  Finish(completion, record, status.ok());
  return true;
}

void ResultWriter::FinishCanary(const Completion& completion) {
  listener_.OnCanary(completion);
  farm_.Committed(completion.item.candidate_id, /*superseded=*/false);
}

void ResultWriter::Finish(const Completion& completion,
                          const database::Record& record, bool added) {
  listener_.OnRecorded(completion.item, record, added);
  farm_.Committed(completion.item.candidate_id, !added);
  listener_.OnAcknowledged(completion.item);
}

}  // namespace tilefarm::jobs

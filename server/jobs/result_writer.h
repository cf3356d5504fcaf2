// Turns accepted results into records, durably, in groups.
//
//   farm --OnResult--> queue --one thread--> Store (one transaction a group)
//                                              |
//                       RecordListener <-------+--> farm.Committed:
//                                                   acknowledged
//
// A group that cannot be stored is tried again. If the store refuses one
// result, the writer finds it by storing parts of the group, logs it, and
// acknowledges it as superseded, so that it does not block the others.
#ifndef TILEFARM_SERVER_JOBS_RESULT_WRITER_H_
#define TILEFARM_SERVER_JOBS_RESULT_WRITER_H_

#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/mutex.h"
#include "base/pulse.h"
#include "database/store.h"
#include "server/farm/farm.h"

namespace tilefarm::jobs {

// Called on the writer's thread for every result: when it is durable, and again
// when it is acknowledged. Must not block.
class RecordListener {
 public:
  virtual ~RecordListener() = default;
  // `added` is false if the candidate had a record already, which is kept.
  virtual void OnRecorded(const farm::Completion& completion,
                          const database::Record& record, bool added) = 0;
  // The result was acknowledged and has left the farm.
  virtual void OnAcknowledged(const farm::WorkItem& /*item*/) {}
  // The result of a canary. If it is bad, all earlier results of its device are
  // durable. If it is good, all durable results of its device are earlier ones.
  virtual void OnCanary(const farm::Completion& /*completion*/) {}
  // A cluster of a comparison, which is not stored.
  virtual void OnCompared(const farm::Completion& /*completion*/) {}
};

// The record of a completed measurement.
database::Record MakeRecord(const farm::Completion& completion,
                            absl::Time recorded_at);

// Key of the blob with the measurement of a program as written, as JSON of a
// record. It is not a trial, so it is not among the records.
std::string BaselineKey(const std::string& task_id);

// Since the start.
struct WriterFigures {
  int64_t failures = 0;  // of commits
  int64_t waiting = 0;   // now
  Histogram commit_seconds;
};

class ResultWriter : public farm::ResultSink {
 public:
  // All outlive the writer. The thread starts at once.
  ResultWriter(database::Store& store, farm::Farm& farm,
               RecordListener& listener, const farm::Timeouts& timeouts,
               Clock& clock);
  // Commits what is queued (one attempt), then ends the thread.
  ~ResultWriter() override;

  void OnResult(farm::Completion completion) override;

  // Why results cannot be stored now, and what to do about it, for people;
  // empty: they can. Thread-safe.
  std::string problem() const;
  WriterFigures figures() const;
  // Makes no progress while a commit runs.
  const Pulse& pulse() const { return pulse_; }

 private:
  void Main();
  // Returns the results that must be tried again, in order. `apart`: if a group
  // fails, its parts are tried, whatever the reason was.
  std::vector<farm::Completion> Commit(std::vector<farm::Completion> group,
                                       bool apart);
  // Returns the results that must be tried again.
  std::set<const farm::Completion*> CommitRecords(
      std::span<const farm::Completion* const> group, bool apart);
  bool CommitBaseline(const farm::Completion& completion);
  bool CommitMeasure(const farm::Completion& completion);
  // Whether to give up a result that could not be written alone.
  bool GiveUp(const farm::Completion& completion,
              const database::Record& record, const absl::Status& status);
  // Logs the status if it differs from the last one.
  void NoteStored(const absl::Status& status);
  void FinishCanary(const farm::Completion& completion);
  void Finish(const farm::Completion& completion,
              const database::Record& record, bool added);

  database::Store& store_;
  farm::Farm& farm_;
  RecordListener& listener_;
  const farm::Timeouts timeouts_;
  Clock& clock_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<farm::Completion> queue_ ABSL_GUARDED_BY(mutex_);
  std::string problem_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  WriterFigures figures_ ABSL_GUARDED_BY(mutex_);
  Pulse pulse_;
  // Used by the thread alone: writes that succeeded, and for candidate ids how
  // often their results failed while the store accepted others of their size.
  int64_t stored_ = 0;
  std::map<std::string, int> failed_;
  std::thread thread_;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_RESULT_WRITER_H_

// Turns accepted results into records, durably, in groups.
//
//   farm --OnResult--> queue --one thread--> Store (one transaction a group)
//                                              |
//                       job told <-------------+--> farm.Committed:
//                       acknowledged
//
// A group that is not stored is tried again. A result that the store refuses is
// found by storing parts of its group, named in the log, and acknowledged as
// superseded; it holds up no other.
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

// Told of every result once it is durable and before it is acknowledged, and
// again after, on the writer's thread; must not block.
class RecordListener {
 public:
  virtual ~RecordListener() = default;
  // `added` is false where the candidate had a record already, which stays.
  virtual void OnRecorded(const farm::WorkItem& item,
                          const database::Record& record, bool added) = 0;
  // It was acknowledged, and the farm knows it no longer.
  virtual void OnAcknowledged(const farm::WorkItem& /*item*/) {}
  // A canary came back. Of a bad one whatever its device reported before is
  // durable; of a good one whatever is durable was reported before.
  virtual void OnCanary(const farm::Completion& /*completion*/) {}
};

// The record of a completed measurement.
database::Record MakeRecord(const farm::Completion& completion,
                            absl::Time recorded_at);

// Where the measurement of a program as written is kept: a blob with the JSON
// of a record. It is no trial and no schedule, so it is not among the records.
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

  // Why results cannot be stored now, and what to do, for people; empty: they
  // can. Thread-safe.
  std::string problem() const;
  WriterFigures figures() const;
  // Still while a commit takes its time.
  const Pulse& pulse() const { return pulse_; }

 private:
  void Main();
  // What must be tried again, in order. `apart`: where a group fails, its parts
  // are tried, whatever the reason was.
  std::vector<farm::Completion> Commit(std::vector<farm::Completion> group,
                                       bool apart);
  // Returns those that must be tried again.
  std::set<const farm::Completion*> CommitRecords(
      std::span<const farm::Completion* const> group, bool apart);
  bool CommitBaseline(const farm::Completion& completion);
  bool CommitMeasure(const farm::Completion& completion);
  // After a write of this result alone failed: whether it is given up.
  bool GiveUp(const farm::Completion& completion,
              const database::Record& record, const absl::Status& status);
  // Logs what is new about it.
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
  // Of the thread alone: writes that succeeded, and candidate ids to how often
  // their results failed while the store took something else of their size.
  int64_t stored_ = 0;
  std::map<std::string, int> failed_;
  std::thread thread_;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_RESULT_WRITER_H_

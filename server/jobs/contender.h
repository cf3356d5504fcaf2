// Records that may be the best of their task, and the race between them after
// the last trial.
#ifndef TILEFARM_SERVER_JOBS_CONTENDER_H_
#define TILEFARM_SERVER_JOBS_CONTENDER_H_

#include <string>
#include <vector>

#include "database/race.h"
#include "database/record.h"
#include "database/store.h"

namespace tilefarm::jobs {

struct Contender {
  database::Record record;
  database::Rounds rounds;  // its re-measurements
  int requested = 0;        // rounds asked for by this job

  database::Standing standing() const;
  // False while the only measurement was stopped early.
  bool can_win() const { return rounds.count() > 0 || !record.stopped_early; }
};

// The fastest few records of a task. A value type.
//
// The minimum of many noisy times is too low. Therefore the fastest candidates
// are measured again in rounds that interleave them, so that a disturbance of
// the machine slows all of them. A round leaves out candidates that earlier
// rounds proved slower; those that are left after three rounds have times from
// three processes. database::PickWinner chooses the winner.
//
// A candidate whose measurement was stopped early lost to a time that may have
// been too low as well. It enters the race if the leader's rounds are no faster
// than the samples that it has.
class Contenders {
 public:
  // A record for which MayCountAsBest holds.
  void Add(const database::Record& record);
  // A new measurement of one of them. It counts as a round, or rules the
  // candidate out if its code failed. Measurements of others are ignored.
  void NoteMeasurement(const std::string& candidate_id,
                       const database::Record& measured,
                       const std::string& fingerprint);
  bool Contains(const std::string& candidate_id) const;
  // Adds the measurements that are in the store.
  void NoteStored(const database::Store& store, const std::string& fingerprint);

  // The candidates of the job's next round, fastest first, counted as
  // requested. To be called when the previous round has ended. Empty: the race
  // is over. Pointers are valid until the next call of a non-const method.
  std::vector<const Contender*> NextRound(const std::string& job_id);

  // Null: none can win.
  const Contender* winner() const;
  double best_seconds() const;  // 0: none

 private:
  std::vector<Contender> list_;  // by first time
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_CONTENDER_H_

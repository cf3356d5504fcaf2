// Records that may be the best of their task, and the race between them once
// the trials are done.
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
  // Not while all that is known is a measurement that was stopped early.
  bool can_win() const { return rounds.count() > 0 || !record.stopped_early; }
};

// The fastest few. A value type.
//
// The fastest of many noisy times is too good to be true, so the fastest
// candidates are measured again, in rounds that interleave them: what slows the
// machine for a while slows them all. A round leaves out whoever the rounds
// before proved slower; whoever is left after three has its time from three
// processes. The winner is database::PickWinner's.
//
// One that was stopped early lost to a time that may have been luck, too, or of
// a better hour: it enters where the leader's rounds are no faster than what
// was seen of it.
class Contenders {
 public:
  // A record for which MayCountAsBest holds.
  void Add(const database::Record& record);
  // A measurement of one of them: one more round, or rules it out where it
  // failed for a reason that lies in the code. Others are ignored.
  void NoteMeasurement(const std::string& candidate_id,
                       const database::Record& measured,
                       const std::string& fingerprint);
  bool Contains(const std::string& candidate_id) const;
  // Takes in the measurements that the store has.
  void NoteStored(const database::Store& store, const std::string& fingerprint);

  // Those that run in the next round of the job, fastest first, counted as
  // requested; to be called when the round before has ended. Empty: the race is
  // over. Pointers are valid until the next call of a non-const method.
  std::vector<const Contender*> NextRound(const std::string& job_id);

  // Null: none that can win.
  const Contender* winner() const;
  double best_seconds() const;  // 0: none

 private:
  std::vector<Contender> list_;  // by first time
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_CONTENDER_H_

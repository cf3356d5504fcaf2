// Records that may be the best of their task, and what measuring them again
// said.
#ifndef TILEFARM_SERVER_JOBS_CONTENDER_H_
#define TILEFARM_SERVER_JOBS_CONTENDER_H_

#include <string>
#include <vector>

#include "database/record.h"
#include "database/store.h"

namespace tilefarm::jobs {

struct Contender {
  database::Record record;
  double seconds = 0;  // of the latest measurement
  bool remeasured = false;
};

// The fastest few, fastest first. A value type.
class Contenders {
 public:
  // A record for which CountsAsBest holds.
  void Add(const database::Record& record);
  // A measurement of one of them: replaces its time, or rules it out where it
  // failed for a reason that lies in the code. Others are ignored.
  void NoteMeasurement(const std::string& candidate_id,
                       const database::Record& measured,
                       const std::string& fingerprint);
  // Takes in the measurements that the store has.
  void NoteStored(const database::Store& store, const std::string& fingerprint);

  // 0: none.
  double best_seconds() const;
  std::vector<Contender>& list() { return list_; }

 private:
  std::vector<Contender> list_;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_CONTENDER_H_

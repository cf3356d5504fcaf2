// The life of a candidate as spans of time.
//
//   candidate  sampled|stored ------------------------------------- stored
//     sampled    sampled -> queued       the search waits for the log
//     queued     queued -> leased        it waits for a device
//     leased     leased -> building      it is on its way, or waits there
//     build      building -> built
//     waits for cores    built -> running
//     run        running -> reported
//     store      reported -> stored
#ifndef TILEFARM_SERVER_SPANS_LIFE_SPANS_H_
#define TILEFARM_SERVER_SPANS_LIFE_SPANS_H_

#include <vector>

#include "absl/time/time.h"
#include "server/jobs/job_log.h"

namespace tilefarm::spans {

struct LifeSpan {
  const char* name;
  absl::Time from, to;
};

// The whole first. Stages that were not reached are left out, and so are those
// whose end the log does not know.
std::vector<LifeSpan> SpansOf(const jobs::LoggedLife& life);

// Whether the stage was reached.
inline bool Known(absl::Time at) { return at != absl::InfinitePast(); }

}  // namespace tilefarm::spans

#endif  // TILEFARM_SERVER_SPANS_LIFE_SPANS_H_

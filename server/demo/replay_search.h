// Proposes again what a recorded search proposed, in the same order.
#ifndef TILEFARM_SERVER_DEMO_REPLAY_SEARCH_H_
#define TILEFARM_SERVER_DEMO_REPLAY_SEARCH_H_

#include <memory>

#include "server/demo/recording.h"
#include "server/jobs/search_factory.h"

namespace tilefarm::demo {

// Tasks that the recording does not have get FailedPrecondition.
jobs::SearchFactory ReplayFactory(std::shared_ptr<const Recording> recording);

}  // namespace tilefarm::demo

#endif  // TILEFARM_SERVER_DEMO_REPLAY_SEARCH_H_

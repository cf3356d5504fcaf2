// Looks up the best record on a tune-server.
#ifndef TILEFARM_COMPILER_DRIVER_REMOTE_BEST_H_
#define TILEFARM_COMPILER_DRIVER_REMOTE_BEST_H_

#include "compiler/driver/choose_schedule.h"
#include "transport/endpoint.h"

namespace tilefarm::driver {

// Queries the server. Unavailable if it does not answer within ten seconds;
// NotFound if it has no usable record; FailedPrecondition or errors of
// transport::CheckEndpoint for wrong credentials.
//
// `explain`, if it is not null, gets the explanation of each lookup;
// FailedPrecondition from a server that is too old to give one.
FindBest BestOfServer(const transport::Endpoint& server,
                      TakeExplanation explain = nullptr);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_REMOTE_BEST_H_

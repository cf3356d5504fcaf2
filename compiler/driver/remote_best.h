// The best record, asked of a tune-server.
#ifndef TILEFARM_COMPILER_DRIVER_REMOTE_BEST_H_
#define TILEFARM_COMPILER_DRIVER_REMOTE_BEST_H_

#include "compiler/driver/choose_schedule.h"
#include "transport/endpoint.h"

namespace tilefarm::driver {

// Asks the server. Unavailable where it does not answer within ten seconds;
// NotFound where it has no record that may be used; FailedPrecondition or
// errors of transport::CheckEndpoint where the credentials are at fault.
FindBest BestOfServer(const transport::Endpoint& server);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_REMOTE_BEST_H_

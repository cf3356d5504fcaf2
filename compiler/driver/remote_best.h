// The best record, asked of a tune-server.
#ifndef TILEFARM_COMPILER_DRIVER_REMOTE_BEST_H_
#define TILEFARM_COMPILER_DRIVER_REMOTE_BEST_H_

#include <string>

#include "compiler/driver/choose_schedule.h"

namespace tilefarm::driver {

// Asks the server at HOST:PORT. Unavailable where it does not answer within
// ten seconds; NotFound where it has no record that may be used.
FindBest BestOfServer(const std::string& address);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_REMOTE_BEST_H_

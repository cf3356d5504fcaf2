// What can be said of a server's options without starting one.
#ifndef TILEFARM_SERVER_SERVICES_CHECK_CONFIG_H_
#define TILEFARM_SERVER_SERVICES_CHECK_CONFIG_H_

#include <string>
#include <vector>

#include "server/services/server.h"

namespace tilefarm::services {

// Every problem found, as a sentence; empty where a server would start: where
// it may listen, files of certificates and keys (there, private, fitting each
// other, not expired), the database (there or to be made, readable, a schema
// that this server knows). Changes nothing; a server may be running.
std::vector<std::string> CheckConfig(const ServerOptions& options);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_CHECK_CONFIG_H_

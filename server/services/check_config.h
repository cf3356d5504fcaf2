// Checks a server's options without starting it.
#ifndef TILEFARM_SERVER_SERVICES_CHECK_CONFIG_H_
#define TILEFARM_SERVER_SERVICES_CHECK_CONFIG_H_

#include <string>
#include <vector>

#include "server/services/server.h"

namespace tilefarm::services {

// Every problem found, as a sentence; empty: a server would start. Checks where
// it may listen, the files of certificates and keys (present, private,
// matching, not expired), and the database (present or possible to create,
// readable, with a known schema). Changes nothing; a server may be running.
std::vector<std::string> CheckConfig(const ServerOptions& options);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_CHECK_CONFIG_H_

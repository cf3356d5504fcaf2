// The version of the programs of the server.
#ifndef TILEFARM_SERVER_SERVICES_VERSION_H_
#define TILEFARM_SERVER_SERVICES_VERSION_H_

#include <string>
#include <string_view>

namespace tilefarm::services {

extern const char* const kRelease;  // "0.1.0"

// "PROGRAM 0.1.0\nprotocol 1\nschema 1\nfingerprint llvm-...".
std::string VersionText(std::string_view program);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_VERSION_H_

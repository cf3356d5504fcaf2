#include "server/services/version.h"

#include "absl/strings/str_cat.h"
#include "compiler/driver/compile.h"
#include "database/migrations.h"
#include "server/farm/farm.h"

namespace tilefarm::services {

const char* const kRelease = TILEFARM_RELEASE;

std::string VersionText(std::string_view program) {
  return absl::StrCat(std::string(program), " ", kRelease, "\nprotocol ",
                      farm::kProtocolVersion, "\nschema ",
                      database::SchemaVersion(), "\nfingerprint ",
                      driver::Fingerprint());
}

}  // namespace tilefarm::services

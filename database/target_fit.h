// Whether a record's target fits the wanted one. Private to database/.
#ifndef TILEFARM_DATABASE_TARGET_FIT_H_
#define TILEFARM_DATABASE_TARGET_FIT_H_

#include <map>
#include <optional>
#include <string>

#include "compiler/target/target.h"

namespace tilefarm::database {

// Parses each target key once. Not thread-safe.
class TargetCache {
 public:
  // Null where the key is not understood. Valid until Trim.
  const target::Target* Find(const std::string& key);
  // Forgets everything if there are very many keys.
  void Trim();

 private:
  std::map<std::string, std::optional<target::Target>> targets_;
};

// kNone: the record must not be used. A trace with tensor intrinsics
// (`tensorized`) needs every feature that its target had.
target::Match TargetFit(const target::Target* recorded,
                        const target::Target& wanted, bool tensorized);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_TARGET_FIT_H_

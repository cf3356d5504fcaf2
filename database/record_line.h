// Reads the usual lines of an export fast. Private to database/: callers use
// RecordFromJson, which reads every line.
#ifndef TILEFARM_DATABASE_RECORD_LINE_H_
#define TILEFARM_DATABASE_RECORD_LINE_H_

#include <optional>
#include <string_view>

#include "database/record.h"

namespace tilefarm::database {

// The record, as the general reader gives it, for lines with the known keys,
// each once and all required ones, in any order, in ASCII, without
// re-measurements. nullopt: any other line, damaged ones included; the general
// reader decides about those and has the words for what is wrong.
std::optional<Record> ReadUsualLine(std::string_view line);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_RECORD_LINE_H_

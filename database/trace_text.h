// A trace's text as the database keeps it: the fixed text once per sketch, the
// decisions once per record.
//
//   v3, v4 = sch.sample_perfect_tile(l1, n=2, ..., decision=[16, 8])
//
// becomes the sketch text
//
//   v3, v4 = sch.sample_perfect_tile(l1, n=2, ..., decision=?)
//
// and the decisions "[16, 8]". Several decisions are joined by ";".
#ifndef TILEFARM_DATABASE_TRACE_TEXT_H_
#define TILEFARM_DATABASE_TRACE_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tilefarm::database {

struct SplitTrace {
  std::string sketch;
  // Absent if the sketch is the whole trace.
  std::optional<std::string> decisions;
};

// Never fails: a text whose decisions cannot be separated is kept whole.
// JoinTrace gives back the same bytes.
SplitTrace SplitTraceText(std::string_view trace);

// DataLoss: the decisions do not fit the sketch.
absl::StatusOr<std::string> JoinTraceText(const SplitTrace& split);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_TRACE_TEXT_H_

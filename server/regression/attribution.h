// What made a benchmark slower or faster: the code generator, the schedule, or
// the device.
//
// A program's time depends on the compiler that built it and on the schedule it
// replayed. Four artifacts separate the two:
//
//                      old schedule   new schedule
//   old code generator   baseline       schedule
//   new code generator   code           both
//
// Each of the other three is compared with the baseline on the same device in
// the same minutes, so that the device cancels out. Whether the device moved
// shows in fixed artifacts alone: the canary, and the baseline's own artifact,
// now against their times when the baseline was measured.
#ifndef TILEFARM_SERVER_REGRESSION_ATTRIBUTION_H_
#define TILEFARM_SERVER_REGRESSION_ATTRIBUTION_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/regression/paired_ratio.h"

namespace tilefarm::regression {

// Ratios against the baseline artifact. A cell that could not be built or
// measured is absent: an old code generator may not know a primitive that the
// new schedule uses.
struct AttributionCells {
  RatioInterval both;
  // It is not known whether the artifacts differ; the device may tell why.
  bool unsettled = false;
  std::optional<RatioInterval> code;      // new code generator, old schedule
  std::optional<RatioInterval> schedule;  // old code generator, new schedule
  // Both code generators make the same bytes of the old schedule; both
  // schedules are the same. There is nothing to measure then: the ratio is 1.
  bool same_code = false;
  bool same_schedule = false;
  // The device: a fixed artifact's time now against then (DriftRatio). Where
  // both are known, the benchmark's own artifact decides.
  std::optional<RatioInterval> canary;
  std::optional<RatioInterval> baseline_now;
};

enum class Cause {
  kCodeGenerator,
  kSchedule,
  // Neither alone, but the new schedule with the new code generator.
  kInteraction,
  kDevice,
};

// "code generator", "schedule", "schedule with code generator", "device"
std::string_view CauseName(Cause cause);

struct Attribution {
  // In the order of the enum; empty: unknown.
  std::vector<Cause> causes;
  // Each cause's own ratio, as `causes`.
  std::vector<double> ratios;
  // One sentence: "code generator: +5.2 % with the old schedule", or why it is
  // unknown.
  std::string text;
};

struct AttributionOptions {
  // A part counts as a cause if its interval excludes 1 in the direction of the
  // change, and it is at least this share of the change's logarithm. Of three
  // parts that add up to the change, one is a third of it or more.
  double least_share = 0.25;
  // The device moved if a fixed artifact's interval excludes 1 and its ratio
  // deviates by this much.
  double device_threshold = 0.03;
};

// The device is a cause only of a change against history (`baseline_now`,
// `canary`), which interleaved ratios do not contain; it is reported beside the
// others, and where there are none.
Attribution Attribute(const AttributionCells& cells,
                      const AttributionOptions& options = {});

// A fixed artifact's time now against then, from its times of each period
// (seconds), by the intervals of both medians: the confidence is 90 % at least.
// Absent: fewer than 6 of either, or a time that is not positive.
std::optional<RatioInterval> DriftRatio(std::span<const double> then,
                                        std::span<const double> now);

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_ATTRIBUTION_H_

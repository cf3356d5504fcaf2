#include "server/regression/attribution.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/statistics.h"
#include "server/regression/ratio_text.h"

namespace tilefarm::regression {
namespace {

// MedianOf gives a 95 % interval from this many samples on.
constexpr size_t kFewestForDrift = 6;

bool Excludes(const RatioInterval& interval, bool slower) {
  return interval.clusters > 0 &&
         (slower ? interval.low > 1 : interval.high < 1);
}

bool DeviceMoved(const RatioInterval& fixed, double threshold) {
  return (Excludes(fixed, true) || Excludes(fixed, false)) &&
         std::abs(std::log(fixed.ratio)) >= std::log1p(threshold);
}

// A known part that is no change at all.
RatioInterval One(const RatioInterval& like) {
  RatioInterval one = like;
  one.ratio = one.low = one.high = 1;
  return one;
}

// What remains of the change beside code generator and schedule. Its bounds are
// those that the bounds of the three measured ratios leave.
RatioInterval InteractionOf(const RatioInterval& both,
                            const RatioInterval& code,
                            const RatioInterval& schedule) {
  RatioInterval rest = both;
  rest.ratio = both.ratio / (code.ratio * schedule.ratio);
  rest.low = both.low / (code.high * schedule.high);
  rest.high = both.high / (code.low * schedule.low);
  return rest;
}

std::string PartText(Cause cause, double ratio) {
  const std::string change = ChangeText(ratio);
  switch (cause) {
    case Cause::kCodeGenerator:
      return absl::StrCat("code generator: ", change, " with the old schedule");
    case Cause::kSchedule:
      return absl::StrCat("schedule: ", change, " with the old code generator");
    case Cause::kInteraction:
      return absl::StrCat("new schedule with the new code generator: ", change,
                          " beyond what each does alone");
    case Cause::kDevice:
      return absl::StrCat("device: what did not change is ", change,
                          " against then");
  }
  return "";
}

constexpr char kNothingStandsOut[] =
    "unknown: no part of the change stands out from the noise";

struct Part {
  Cause cause;
  double ratio;
  std::string text;
};

class Attributor {
 public:
  Attributor(const AttributionCells& cells, const AttributionOptions& options)
      : cells_(cells), options_(options), slower_(cells.both.ratio > 1) {}

  Attribution Run() {
    AttributeDifference();
    AttributeDevice();
    std::sort(parts_.begin(), parts_.end(),
              [](const Part& a, const Part& b) { return a.cause < b.cause; });
    Attribution result;
    for (const Part& part : parts_) {
      result.causes.push_back(part.cause);
      result.ratios.push_back(part.ratio);
      if (!result.text.empty()) result.text += "; ";
      result.text += part.text;
    }
    if (!result.text.empty() && !remark_.empty()) result.text += "; ";
    result.text += remark_;
    return result;
  }

 private:
  void AttributeDifference() {
    if (cells_.unsettled) {
      remark_ = "whether the artifacts differ is not settled";
      return;
    }
    if (!Excludes(cells_.both, slower_)) {
      remark_ = "both artifacts are equally fast now";
      return;
    }
    std::optional<RatioInterval> code = cells_.code;
    std::optional<RatioInterval> schedule = cells_.schedule;
    if (cells_.same_schedule) {
      code = cells_.both;
      schedule = One(cells_.both);
    } else if (cells_.same_code) {
      code = One(cells_.both);
      schedule = cells_.both;
    }
    if (!code.has_value() && !schedule.has_value()) {
      remark_ =
          "unknown: neither the old schedule with the new code generator nor "
          "the new schedule with the old one was measured";
      return;
    }
    if (code.has_value()) Consider(Cause::kCodeGenerator, *code);
    if (schedule.has_value()) Consider(Cause::kSchedule, *schedule);
    if (code.has_value() && schedule.has_value()) {
      Consider(Cause::kInteraction,
               InteractionOf(cells_.both, *code, *schedule));
    } else {
      ConsiderUnmeasured(code.has_value(),
                         code.has_value() ? *code : *schedule);
    }
    if (parts_.empty()) remark_ = kNothingStandsOut;
  }

  // One part is known. The other one and the interaction are not told apart.
  void ConsiderUnmeasured(bool has_code, const RatioInterval& known) {
    const RatioInterval rest =
        InteractionOf(cells_.both, known, One(cells_.both));
    if (!IsCause(rest)) return;
    const Cause cause = has_code ? Cause::kSchedule : Cause::kCodeGenerator;
    parts_.push_back(
        {cause, rest.ratio,
         absl::StrCat(std::string(CauseName(cause)), ": ",
                      ChangeText(rest.ratio), ", measured with the new ",
                      has_code ? "code generator only" : "schedule only")});
  }

  void AttributeDevice() {
    const std::optional<RatioInterval>& fixed =
        cells_.baseline_now.has_value() ? cells_.baseline_now : cells_.canary;
    if (!fixed.has_value()) return;
    if (!DeviceMoved(*fixed, options_.device_threshold)) return;
    parts_.push_back(
        {Cause::kDevice, fixed->ratio, PartText(Cause::kDevice, fixed->ratio)});
  }

  bool IsCause(const RatioInterval& part) const {
    const double total = std::log(cells_.both.ratio);
    return Excludes(part, slower_) &&
           std::log(part.ratio) / total >= options_.least_share;
  }

  void Consider(Cause cause, const RatioInterval& part) {
    if (!IsCause(part)) return;
    parts_.push_back({cause, part.ratio, PartText(cause, part.ratio)});
  }

  const AttributionCells& cells_;
  const AttributionOptions& options_;
  const bool slower_;
  std::vector<Part> parts_;
  std::string remark_;
};

}  // namespace

std::string_view CauseName(Cause cause) {
  switch (cause) {
    case Cause::kCodeGenerator:
      return "code generator";
    case Cause::kSchedule:
      return "schedule";
    case Cause::kInteraction:
      return "schedule with code generator";
    case Cause::kDevice:
      return "device";
  }
  return "";
}

Attribution Attribute(const AttributionCells& cells,
                      const AttributionOptions& options) {
  return Attributor(cells, options).Run();
}

std::optional<RatioInterval> DriftRatio(std::span<const double> then,
                                        std::span<const double> now) {
  if (then.size() < kFewestForDrift || now.size() < kFewestForDrift) {
    return std::nullopt;
  }
  for (const std::span<const double> period : {then, now}) {
    for (const double seconds : period) {
      if (!std::isfinite(seconds) || seconds <= 0) return std::nullopt;
    }
  }
  const MedianInterval before = MedianOf({then.begin(), then.end()});
  const MedianInterval after = MedianOf({now.begin(), now.end()});
  return RatioInterval{
      .ratio = after.median / before.median,
      .low = after.low / before.high,
      .high = after.high / before.low,
      .level = 0.9,
      .clusters = static_cast<int>(std::min(then.size(), now.size()))};
}

}  // namespace tilefarm::regression

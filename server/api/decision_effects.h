// What each decision of a sketch did to the time of its candidates. A pure
// function of what was measured.
#ifndef TILEFARM_SERVER_API_DECISION_EFFECTS_H_
#define TILEFARM_SERVER_API_DECISION_EFFECTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilefarm::api {

// A candidate of the sketch that was timed.
struct DecidedCandidate {
  std::string_view decisions;  // "[16, 8];1" (database/trace_text.h)
  double seconds = 0;          // > 0
};

struct ValueEffect {
  std::string value;  // "[16, 8]"
  int64_t count = 0;  // candidates with it
  double best_seconds = 0, median_seconds = 0;
};

struct DecisionEffect {
  // The call of the sketch: "v3, v4 = sch.sample_perfect_tile(...,
  // decision=?)".
  std::string call;
  // The share of the variance of log(seconds) that lies between candidates with
  // different values of this decision, 0 to 1, less what random values of as
  // many kinds would show (omega squared of a one-way analysis of variance). It
  // says what goes together, not what causes: a search that tries good values
  // together makes their effects larger.
  double share = 0;
  int64_t values = 0;  // different ones
  // The most frequent ones, at most kMostValues, the fastest best first.
  std::vector<ValueEffect> effects;
};

inline constexpr size_t kMostValues = 24;

// One for each decision of the sketch, in its order. Candidates whose decisions
// do not fit the sketch are left out.
std::vector<DecisionEffect> DecisionEffects(
    std::string_view sketch, std::span<const DecidedCandidate> candidates);

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_DECISION_EFFECTS_H_

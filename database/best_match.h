// Chooses the record of a workload that answers a query: DESIGN's fallback
// order as a pure function.
#ifndef TILEFARM_DATABASE_BEST_MATCH_H_
#define TILEFARM_DATABASE_BEST_MATCH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "database/fit.h"
#include "database/race.h"
#include "database/record.h"

namespace tilefarm::database {

// A record that may be returned: ok, verified, measured in full, on a target
// that fits.
struct Contender {
  int64_t record_id = 0;
  // Its time; the order within one protocol and device model.
  Standing standing;
  // How its target fits the wanted one; never kNone.
  target::Match match = target::Match::kExact;
  // Measured on the wanted device model (brand, cpu, features, caches).
  bool same_model = false;
  // Both targets name the same number of cores.
  bool equal_cores = false;
  // Made by the querying compiler: the same fingerprint.
  bool fresh = true;
  // Timed on an emulated device, whose times do not order candidates as a real
  // device does.
  bool emulated = false;
  Protocol protocol;
  std::string device;
  std::string device_model;
  // Of the record's target, for the reason.
  std::string kind, cpu;
  int cores = 1;
  std::string fingerprint;
  // How many records it stands for, the latest of which is record_id.
  int64_t records = 1;
};

// The step of the fallback order.
Step StepOf(const Contender& contender);
Fit FitOf(const Contender& contender);

// The index of the best one; nullopt: there are none.
//
//  1. Timed on a real device before emulated; then by step; within a step
//     equal cores first, then the closer target, then fresh before stale.
//  2. Among those, one protocol and one device, because medians of different
//     ones cannot be compared: a warm cache before a cold one, the layout
//     as stated before a packed one, then the device model with most
//     contenders (the later tuned on a tie), and of its devices the one with
//     the winner.
//  3. Among those, PickWinner's; the older record on a tie.
std::optional<size_t> ChooseBest(std::span<const Contender> contenders);

// Its parts, for contenders that stand for many records each: the contenders
// that step 1 and the protocol of step 2 leave, and those of them whose device
// model step 2 chooses.
std::vector<size_t> KeepFitting(std::span<const Contender> contenders);
std::vector<size_t> KeepOneModel(std::span<const Contender> contenders,
                                 std::vector<size_t> kept);

// "exact device model", "same microarchitecture (znver4), tuned for 8 cores".
std::string ReasonFor(const Contender& contender);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_BEST_MATCH_H_

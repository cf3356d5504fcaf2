#include "database/best_match.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace tilefarm::database {
namespace {

auto ProtocolOf(const Contender& c) {
  return std::make_tuple(c.protocol.cold_cache,
                         c.protocol.layout != "as_stated", c.protocol.layout,
                         c.protocol.cores);
}

// Keeps the contenders whose `key` is the least.
template <typename Key>
void KeepLeast(std::span<const Contender> all, std::vector<size_t>& kept,
               const Key& key) {
  if (kept.empty()) return;
  auto least = key(all[kept[0]]);
  for (const size_t i : kept) least = std::min(least, key(all[i]));
  std::erase_if(kept, [&](size_t i) { return key(all[i]) != least; });
}

}  // namespace

Step StepOf(const Contender& contender) {
  if (contender.match == target::Match::kExact && contender.same_model) {
    return Step::kDeviceModel;
  }
  return contender.match >= target::Match::kMicroarch ? Step::kMicroarchitecture
                                                      : Step::kFamily;
}

Fit FitOf(const Contender& c) {
  return {.emulated = c.emulated,
          .step = StepOf(c),
          .other_cores = !c.equal_cores,
          .distance = static_cast<int>(target::Match::kExact) -
                      static_cast<int>(c.match),
          .stale = !c.fresh};
}

std::vector<size_t> KeepFitting(std::span<const Contender> contenders) {
  std::vector<size_t> kept(contenders.size());
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = i;
  KeepLeast(contenders, kept, FitOf);
  KeepLeast(contenders, kept, ProtocolOf);
  return kept;
}

std::vector<size_t> KeepOneModel(std::span<const Contender> contenders,
                                 std::vector<size_t> kept) {
  struct Tally {
    int64_t count = 0;
    int64_t last_id = 0;
  };
  std::map<std::string, Tally> models;
  for (const size_t i : kept) {
    Tally& tally = models[contenders[i].device_model];
    tally.count += contenders[i].records;
    tally.last_id = std::max(tally.last_id, contenders[i].record_id);
  }
  KeepLeast(contenders, kept, [&](const Contender& c) {
    const Tally& tally = models[c.device_model];
    return std::make_tuple(-tally.count, -tally.last_id);
  });
  return kept;
}

std::optional<size_t> ChooseBest(std::span<const Contender> contenders) {
  if (contenders.empty()) return std::nullopt;
  std::vector<size_t> kept = KeepOneModel(contenders, KeepFitting(contenders));
  // Of one model's devices the winner also names the device.
  std::sort(kept.begin(), kept.end(), [&](size_t a, size_t b) {
    return contenders[a].record_id < contenders[b].record_id;
  });
  std::vector<Standing> standings;
  for (const size_t i : kept) standings.push_back(contenders[i].standing);
  return kept[PickWinner(standings)];
}

std::string ReasonFor(const Contender& contender) {
  std::string reason;
  switch (StepOf(contender)) {
    case Step::kDeviceModel:
      reason = "exact device model";
      break;
    case Step::kMicroarchitecture:
      reason = absl::StrCat(
          "same microarchitecture (",
          contender.cpu.empty() ? contender.kind : contender.cpu, ")");
      break;
    case Step::kFamily:
      reason =
          absl::StrCat("compatible ISA family (tuned for ", contender.kind,
                       contender.cpu.empty() ? "" : ":", contender.cpu, ")");
      break;
  }
  if (!contender.equal_cores) {
    absl::StrAppend(&reason, ", tuned for ", contender.cores,
                    contender.cores == 1 ? " core" : " cores");
  }
  if (!contender.fresh) {
    absl::StrAppend(&reason, ", stale (made by ", contender.fingerprint, ")");
  }
  if (contender.emulated) absl::StrAppend(&reason, ", timed by an emulator");
  return reason;
}

}  // namespace tilefarm::database

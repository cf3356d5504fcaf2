#include "database/layers.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace tilefarm::database {

absl::StatusOr<Layers> Layers::Open(const std::vector<std::string>& paths) {
  if (paths.empty()) return absl::InvalidArgumentError("no database is given");
  std::vector<Layer> layers;
  for (const std::string& path : paths) {
    for (const Layer& known : layers) {
      std::error_code error;
      if (known.path == path ||
          std::filesystem::equivalent(known.path, path, error)) {
        return absl::InvalidArgumentError(
            absl::StrCat("database ", path, " is given twice"));
      }
    }
    absl::StatusOr<std::unique_ptr<Store>> store =
        Store::Open(path, Store::Mode::kReadOnly);
    if (!store.ok()) {
      return absl::Status(
          store.status().code(),
          absl::StrCat("database ", path, ": ", store.status().message()));
    }
    layers.push_back({path, *std::move(store)});
  }
  return Layers(std::move(layers));
}

absl::Status Layers::Named(const Layer& layer,
                           const absl::Status& status) const {
  if (layers_.size() == 1) return status;
  return absl::Status(status.code(), absl::StrCat("database ", layer.path, ": ",
                                                  status.message()));
}

absl::StatusOr<BestMatch> Layers::FindBest(const BestQuery& query) const {
  std::optional<BestMatch> best;
  std::vector<std::string> reasons;
  for (const Layer& layer : layers_) {
    absl::StatusOr<BestMatch> found = layer.store->FindBest(query);
    if (absl::IsNotFound(found.status())) {
      reasons.emplace_back(Named(layer, found.status()).message());
      continue;
    }
    if (!found.ok()) return Named(layer, found.status());
    if (best && !(found->fit < best->fit)) continue;
    best = *std::move(found);
    if (layers_.size() > 1) best->database = layer.path;
    // No later database can fit better.
    if (best->fit == Fit{}) break;
  }
  if (!best) return absl::NotFoundError(absl::StrJoin(reasons, "; "));
  return *std::move(best);
}

absl::StatusOr<Explanation> Layers::ExplainBest(const BestQuery& query) const {
  if (layers_.size() == 1) return layers_[0].store->ExplainBest(query);
  std::vector<Explanation> parts;
  std::optional<size_t> winner;
  std::vector<std::string> reasons;
  for (const Layer& layer : layers_) {
    auto part = layer.store->ExplainBest(query);
    if (!part.ok()) return Named(layer, part.status());
    if (!part->found) {
      reasons.push_back(
          absl::StrCat("database ", layer.path, ": ", part->reason));
    } else if (!winner || part->fit < parts[*winner].fit) {
      winner = parts.size();
    }
    parts.push_back(*std::move(part));
  }
  Explanation all;
  all.workload = parts[0].workload;
  all.reason = absl::StrJoin(reasons, "; ");
  if (winner) {
    all = parts[*winner];
    all.groups.clear();
    all.database = layers_[*winner].path;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    for (ExplainedGroup& group : parts[i].groups) {
      group.database = layers_[i].path;
      if (group.fate == Fate::kChosen && i != *winner) {
        // What was best there.
        const Fate lost = FirstDifference(all.fit, parts[i].fit);
        group.fate = lost == Fate::kSlower ? Fate::kEarlierDatabase : lost;
      }
      all.groups.push_back(std::move(group));
    }
  }
  // The chosen one's group first; otherwise in the order of the databases.
  std::stable_partition(
      all.groups.begin(), all.groups.end(),
      [](const ExplainedGroup& group) { return group.fate == Fate::kChosen; });
  return all;
}

}  // namespace tilefarm::database

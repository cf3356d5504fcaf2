// Several databases as one for lookups: a project's own, a team's, a shipped
// one.
//
//   const auto layers = Layers::Open({"local.db", "team.db", "shipped.db"});
//   const auto best = layers->FindBest(query);
//   Use(best->database);  // the path of the file that has it
//
// The record that fits best is chosen, whichever database has it (fit.h). Among
// those that fit equally well the first database wins, also where a later one
// has a shorter time: times of different databases were not measured side by
// side. docs/decisions/operations/layered-databases.md has the reasons.
#ifndef TILEFARM_DATABASE_LAYERS_H_
#define TILEFARM_DATABASE_LAYERS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "database/explanation.h"
#include "database/store.h"

namespace tilefarm::database {

// Move-only. Its methods are thread-safe.
class Layers {
 public:
  // Opens the files for reading, the preferred one first; at least one. Errors
  // are those of Store::Open, with the file's name: a layer that cannot be read
  // is never left out. InvalidArgument: a file is given twice.
  static absl::StatusOr<Layers> Open(const std::vector<std::string>& paths);

  // As Store::FindBest, on all of them. An error of one database is an error;
  // NotFound says for each one why it has no record.
  absl::StatusOr<BestMatch> FindBest(const BestQuery& query) const;
  // As Store::ExplainBest; every group names its database.
  absl::StatusOr<Explanation> ExplainBest(const BestQuery& query) const;

 private:
  struct Layer {
    std::string path;
    std::unique_ptr<Store> store;
  };
  explicit Layers(std::vector<Layer> layers) : layers_(std::move(layers)) {}
  absl::Status Named(const Layer& layer, const absl::Status& status) const;

  std::vector<Layer> layers_;
};

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_LAYERS_H_

// Why a lookup chose a record: what became of every record of the workload.
//
//   const auto why = store.ExplainBest(query);
//   std::cerr << ExplanationText(*why);
//   std::cout << ExplanationToJson(*why);
//
// Records that share target, device, compiler, protocol and fate are one group.
#ifndef TILEFARM_DATABASE_EXPLANATION_H_
#define TILEFARM_DATABASE_EXPLANATION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "database/best_match.h"
#include "database/fit.h"

namespace tilefarm::database {

// What became of a record, in the order in which lookups decide.
enum class Fate {
  // Records that may not be used:
  kFailed,        // its status is not `ok`
  kUnverified,    // its results were never compared with the reference
  kStoppedEarly,  // not measured in full
  kRuledOut,      // a later measurement of it failed
  kTarget,        // of another kind, or for instructions that are lacking
  kFeatures,      // uses tensor intrinsics, and other features are lacking
  kStale,         // made by another compiler
  kLibrary,       // calls a library's kernel
  kEmulated,      // timed by an emulator
  kFloats,        // rounds differently or leaves out terms
  // Records that another one is preferred to:
  kEmulatedAfterReal,
  kFartherStep,
  kOtherCores,
  kFartherTarget,
  kStaleAfterFresh,
  kOtherProtocol,
  kOtherDeviceModel,
  kSlower,
  kEarlierDatabase,  // an earlier database has a record that fits as well
  kChosen,
};
// "stale": a stable name for JSON.
std::string_view FateName(Fate fate);
std::optional<Fate> ParseFate(std::string_view name);
// "made by another compiler (--allow-stale takes them)"
std::string FateText(Fate fate);

// A record of the workload, after it was examined.
struct Examined {
  Contender contender;  // its `standing` only where it has one
  Fate fate = Fate::kSlower;
  std::string target;   // key
  std::string library;  // of kLibrary: the kernels
};

struct ExplainedGroup {
  std::string database;  // path; empty where there is one database only
  Fate fate = Fate::kSlower;
  std::string target, device, device_model, fingerprint;
  Protocol protocol;
  int64_t records = 0;
  // Of its fastest record; 0: none has a time that counts.
  double best_seconds = 0;

  bool operator==(const ExplainedGroup&) const = default;
};

struct Explanation {
  std::string workload;  // hash
  // The answer of the lookup: why the record was chosen, or why none was.
  bool found = false;
  std::string reason;
  // If it was found:
  Fit fit;
  std::string database;  // where there are several
  std::string chosen;    // candidate id
  double median_seconds = 0;
  // The group of the chosen record is the first one.
  std::vector<ExplainedGroup> groups;

  int64_t records() const;
};

// Sets the fates of the records that are usable (kSlower on entry): the chosen
// one, and for each other one the first rule that prefers the chosen one.
// Leaves refused records as they are.
void JudgeContenders(size_t chosen, std::span<Examined> examined);

// The judged records as groups; the caller fills in the answer.
Explanation Summarize(const std::string& workload,
                      std::span<const Examined> examined);

// "no usable record of workload ...", and why: by numbers of records.
std::string WhyNone(const std::string& workload,
                    std::span<const Examined> examined);
// Texts of those that a permission of the user decides about; empty: none.
std::vector<std::string> LeftOut(std::span<const Examined> examined);

// The first rule by which a record of `worse` loses to one of `better`;
// kSlower: both fit equally well.
Fate FirstDifference(const Fit& better, const Fit& worse);

// One JSON object; docs/formats.md has its keys.
std::string ExplanationToJson(const Explanation& explanation);
// InvalidArgument: not made by ExplanationToJson.
absl::StatusOr<Explanation> ExplanationFromJson(std::string_view json);
// Lines for people, each ending with a line feed.
std::string ExplanationText(const Explanation& explanation);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_EXPLANATION_H_

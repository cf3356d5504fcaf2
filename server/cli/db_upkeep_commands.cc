// db merge, db diff, db prune: on files.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "database/diff.h"
#include "database/merge.h"
#include "database/prune.h"
#include "database/store.h"
#include "server/cli/commands.h"
#include "server/cli/exit_codes.h"
#include "server/cli/format.h"

namespace tilefarm::cli {
namespace {

using database::DiffEntry;
using database::Difference;
using database::DiffSide;
using database::Store;
using Json = nlohmann::ordered_json;

int BadUsage(const char* message) {
  std::fprintf(stderr, "tune: %s\n", message);
  return kBadUsage;
}

void Print(const Json& json) {
  std::printf(
      "%s\n",
      json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

absl::StatusOr<std::unique_ptr<Store>> OpenNamed(const std::string& path) {
  auto store = Store::Open(path, Store::Mode::kReadOnly);
  if (store.ok()) return store;
  return absl::Status(store.status().code(),
                      absl::StrCat(path, ": ", store.status().message()));
}

absl::StatusOr<std::vector<DiffEntry>> DiffFiles(const std::string& a,
                                                 const std::string& b) {
  TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store_a, OpenNamed(a));
  TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store_b, OpenNamed(b));
  return database::Diff(*store_a, *store_b);
}

Json SideJson(const std::optional<DiffSide>& side) {
  if (!side) return nullptr;
  return {{"candidate_id", side->candidate_id},
          {"median_seconds", side->seconds},
          {"device", side->device},
          {"fingerprint", side->fingerprint},
          {"protocol",
           {{"cold_cache", side->protocol.cold_cache},
            {"cores", side->protocol.cores},
            {"layout", side->protocol.layout}}}};
}

Json DiffJson(const std::vector<DiffEntry>& entries) {
  Json list = Json::array();
  for (const DiffEntry& entry : entries) {
    list.push_back({{"workload", entry.task.workload_hash},
                    {"target", entry.task.target},
                    {"difference", database::DifferenceName(entry.difference)},
                    {"ratio", entry.ratio},
                    {"a", SideJson(entry.a)},
                    {"b", SideJson(entry.b)}});
  }
  return list;
}

std::string WordsFor(const DiffEntry& entry) {
  switch (entry.difference) {
    case Difference::kOnlyA:
      return "only in A";
    case Difference::kOnlyB:
      return "only in B";
    case Difference::kSame:
      return "the same record";
    case Difference::kEqual:
      return "equally fast";
    case Difference::kFasterA:
      return absl::StrFormat("A is %.3g times as fast", entry.ratio);
    case Difference::kFasterB:
      return absl::StrFormat("B is %.3g times as fast", entry.ratio);
    case Difference::kIncomparable:
      break;
  }
  return "not comparable: other device models or protocols";
}

std::string DiffTable(const std::vector<DiffEntry>& entries) {
  std::vector<std::vector<std::string>> rows = {
      {"WORKLOAD", "TARGET", "A", "B", "DIFFERENCE"}};
  for (const DiffEntry& entry : entries) {
    rows.push_back({entry.task.workload_hash.substr(0, 12), entry.task.target,
                    entry.a ? Seconds(entry.a->seconds) : "-",
                    entry.b ? Seconds(entry.b->seconds) : "-",
                    WordsFor(entry)});
  }
  return Table(rows);
}

}  // namespace

int DbMerge(const Common& common, const DbOptions& options) {
  if (!options.db.empty()) {
    return BadUsage(
        "merge reads the files that it is given and writes -o OUT: leave out "
        "--db");
  }
  const auto facts = database::Merge(options.sources, options.output);
  if (!facts.ok()) return Fail(facts.status());
  if (facts->other_model > 0) {
    std::fprintf(stderr,
                 "tune: warning: %lld of the known records were measured on "
                 "another device model than the one that is kept: a database "
                 "has one record of a candidate. To look in all of them, give "
                 "--db several times\n",
                 static_cast<long long>(facts->other_model));
  }
  if (common.json) {
    Print({{"file", options.output},
           {"added", facts->added},
           {"known", facts->known},
           {"other_device_model", facts->other_model}});
  } else {
    std::printf("%s: %lld records added, %lld known before\n",
                options.output.c_str(), static_cast<long long>(facts->added),
                static_cast<long long>(facts->known));
  }
  return kSuccess;
}

int DbDiff(const Common& common, const DbOptions& options) {
  if (!options.db.empty()) {
    return BadUsage(
        "diff compares the two files that it is given: leave out "
        "--db");
  }
  const auto entries = DiffFiles(options.sources[0], options.sources[1]);
  if (!entries.ok()) return Fail(entries.status());
  if (common.json) {
    Print(DiffJson(*entries));
  } else {
    std::printf("%s", DiffTable(*entries).c_str());
  }
  return kSuccess;
}

int DbPrune(const Common& common, const DbOptions& options) {
  if (options.db.empty()) {
    return BadUsage(
        "prune works on a file, while no server runs on it: --db "
        "is missing");
  }
  if (options.keep == 0 && options.failed_before.empty()) {
    return BadUsage("prune needs --keep N, --failed-before DATE or both");
  }
  if (options.compact && !options.really_delete) {
    return BadUsage("--compact needs --delete");
  }
  const auto facts =
      database::Prune(options.db, {.keep = options.keep,
                                   .failed_before = options.failed_before,
                                   .dry_run = !options.really_delete,
                                   .compact = options.compact});
  if (!facts.ok()) return Fail(facts.status());
  const int64_t dropped = facts->dropped_ok + facts->dropped_failed;
  if (common.json) {
    Print({{"file", options.db},
           {"deleted", options.really_delete},
           {"records", facts->records},
           {"dropped", facts->dropped_ok},
           {"dropped_failed", facts->dropped_failed},
           {"kept", facts->records - dropped},
           {"bytes_before", facts->bytes_before},
           {"bytes_after", facts->bytes_after}});
    return kSuccess;
  }
  std::printf(
      "%s: %s %lld of %lld records: %lld not among the best, %lld failed\n",
      options.db.c_str(), options.really_delete ? "deleted" : "would delete",
      static_cast<long long>(dropped), static_cast<long long>(facts->records),
      static_cast<long long>(facts->dropped_ok),
      static_cast<long long>(facts->dropped_failed));
  if (!options.really_delete) {
    std::fprintf(stderr, "tune: nothing was deleted: --delete does it\n");
  } else if (options.compact) {
    std::printf("%lld bytes before, %lld now\n",
                static_cast<long long>(facts->bytes_before),
                static_cast<long long>(facts->bytes_after));
  }
  return kSuccess;
}

}  // namespace tilefarm::cli

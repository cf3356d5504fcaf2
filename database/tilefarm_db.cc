#include "database/tilefarm_db.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/target/target.h"
#include "database/store.h"

struct tilefarm_db {
  std::unique_ptr<tilefarm::database::Store> store;

  // Parses each text once: resolving "host" asks the machine.
  absl::StatusOr<tilefarm::target::Target> TargetOf(const std::string& text) {
    {
      tilefarm::MutexLock lock(mutex);
      if (const auto it = targets.find(text); it != targets.end()) {
        return it->second;
      }
    }
    TF_ASSIGN_OR_RETURN(tilefarm::target::Target target,
                        tilefarm::target::Parse(text));
    tilefarm::MutexLock lock(mutex);
    if (targets.size() >= kMaxTargets) targets.clear();
    return targets.emplace(text, std::move(target)).first->second;
  }

  static constexpr size_t kMaxTargets = 256;
  tilefarm::Mutex mutex;
  std::map<std::string, tilefarm::target::Target> targets
      ABSL_GUARDED_BY(mutex);
};

struct tilefarm_db_cursor {
  // The next record; nullopt at the end.
  std::function<absl::StatusOr<std::optional<tilefarm::database::Record>>()>
      next;
  std::optional<tilefarm::database::Record> record;
  tilefarm_db_record view = {};
};

namespace {

using tilefarm::database::BestMatch;
using tilefarm::database::BestQuery;
using tilefarm::database::Record;
using tilefarm::database::Store;
using tilefarm::database::Task;

char* CopyOf(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

int CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return TILEFARM_DB_OK;
    case absl::StatusCode::kNotFound:
      return TILEFARM_DB_NOT_FOUND;
    case absl::StatusCode::kInvalidArgument:
      return TILEFARM_DB_INVALID;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
      return TILEFARM_DB_UNAVAILABLE;
    case absl::StatusCode::kDataLoss:
      return TILEFARM_DB_CORRUPT;
    case absl::StatusCode::kFailedPrecondition:
      return TILEFARM_DB_SCHEMA;
    default:
      return TILEFARM_DB_INTERNAL;
  }
}

// Runs `body`, which returns a status; no exception leaves the C interface.
template <typename Body>
int Guarded(char** error, const Body& body) {
  if (error != nullptr) *error = nullptr;
  absl::Status status;
  try {
    status = body();
  } catch (const std::exception& e) {
    status = absl::InternalError(e.what());
  }
  if (!status.ok() && error != nullptr) {
    *error = CopyOf(std::string(status.message()));
  }
  return CodeOf(status);
}

absl::Status Fill(const BestMatch& best, tilefarm_db_match* match) {
  match->program = CopyOf(best.record.program);
  match->trace = CopyOf(best.record.trace);
  match->target = CopyOf(best.record.target);
  match->reason = CopyOf(best.reason);
  match->median_seconds = best.record.median_seconds;
  if (match->program == nullptr || match->trace == nullptr ||
      match->target == nullptr || match->reason == nullptr) {
    tilefarm_db_match_free(match);
    return absl::ResourceExhaustedError("out of memory");
  }
  return absl::OkStatus();
}

absl::StatusOr<BestQuery> QueryFor(tilefarm_db& db, const char* target,
                                   const char* fingerprint) {
  BestQuery query;
  TF_ASSIGN_OR_RETURN(query.target, db.TargetOf(target));
  query.device_model = query.target.device_model;
  query.allow_stale = fingerprint == nullptr;
  if (fingerprint != nullptr) query.fingerprint = fingerprint;
  return query;
}

absl::Status CheckHash(const char* workload) {
  const std::string_view text = workload;
  if (text.size() == 64 && std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "a workload hash has 64 digits, 0 to 9 and a to f");
}

// The records of `workload`, or of all, page by page.
auto RecordsFrom(const Store& store, std::string workload) {
  return
      [&store, workload = std::move(workload), page = std::vector<Record>(),
       at = size_t{0},
       last = int64_t{0}]() mutable -> absl::StatusOr<std::optional<Record>> {
        if (at == page.size()) {
          TF_ASSIGN_OR_RETURN(page, store.NextRecords(workload, last));
          at = 0;
          if (page.empty()) return std::nullopt;
          last = page.back().id;
        }
        return std::move(page[at++]);
      };
}

auto BestFrom(tilefarm_db& db, std::vector<Task> tasks,
              std::optional<std::string> fingerprint) {
  return [&db, tasks = std::move(tasks), fingerprint = std::move(fingerprint),
          at = size_t{0}]() mutable -> absl::StatusOr<std::optional<Record>> {
    while (at < tasks.size()) {
      const Task& task = tasks[at++];
      TF_ASSIGN_OR_RETURN(
          BestQuery query,
          QueryFor(db, task.target.c_str(),
                   fingerprint ? fingerprint->c_str() : nullptr));
      query.workload_hash = task.workload_hash;
      absl::StatusOr<BestMatch> best = db.store->FindBest(query);
      if (absl::IsNotFound(best.status())) continue;
      TF_RETURN_IF_ERROR(best.status());
      return std::move(best->record);
    }
    return std::nullopt;
  };
}

}  // namespace

int tilefarm_db_open(const char* path, tilefarm_db** db, char** error) {
  return Guarded(error, [&]() -> absl::Status {
    if (path == nullptr || db == nullptr) {
      return absl::InvalidArgumentError("path or db is NULL");
    }
    *db = nullptr;
    TF_ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
                        Store::Open(path, Store::Mode::kReadOnly));
    *db = new tilefarm_db{std::move(store)};
    return absl::OkStatus();
  });
}

void tilefarm_db_close(tilefarm_db* db) { delete db; }

int tilefarm_db_best(tilefarm_db* db, const char* program, const char* target,
                     const char* fingerprint, tilefarm_db_match* match,
                     char** error) {
  return Guarded(error, [&]() -> absl::Status {
    if (db == nullptr || program == nullptr || target == nullptr ||
        match == nullptr) {
      return absl::InvalidArgumentError("db, program, target or match is NULL");
    }
    *match = {};
    TF_ASSIGN_OR_RETURN(BestQuery query, QueryFor(*db, target, fingerprint));
    TF_ASSIGN_OR_RETURN(query.program, tilefarm::ir::ParseFunction(program));
    TF_ASSIGN_OR_RETURN(const BestMatch best, db->store->FindBest(query));
    return Fill(best, match);
  });
}

int tilefarm_db_best_hash(tilefarm_db* db, const char* workload,
                          const char* target, const char* fingerprint,
                          tilefarm_db_match* match, char** error) {
  return Guarded(error, [&]() -> absl::Status {
    if (db == nullptr || workload == nullptr || target == nullptr ||
        match == nullptr) {
      return absl::InvalidArgumentError(
          "db, workload, target or match is NULL");
    }
    *match = {};
    TF_RETURN_IF_ERROR(CheckHash(workload));
    TF_ASSIGN_OR_RETURN(BestQuery query, QueryFor(*db, target, fingerprint));
    query.workload_hash = workload;
    TF_ASSIGN_OR_RETURN(const BestMatch best, db->store->FindBest(query));
    return Fill(best, match);
  });
}

int tilefarm_db_records(tilefarm_db* db, const char* workload,
                        tilefarm_db_cursor** cursor, char** error) {
  return Guarded(error, [&]() -> absl::Status {
    if (db == nullptr || cursor == nullptr) {
      return absl::InvalidArgumentError("db or cursor is NULL");
    }
    *cursor = nullptr;
    if (workload != nullptr) TF_RETURN_IF_ERROR(CheckHash(workload));
    *cursor = new tilefarm_db_cursor{
        .next = RecordsFrom(*db->store, workload == nullptr ? "" : workload)};
    return absl::OkStatus();
  });
}

int tilefarm_db_all_best(tilefarm_db* db, const char* fingerprint,
                         tilefarm_db_cursor** cursor, char** error) {
  return Guarded(error, [&]() -> absl::Status {
    if (db == nullptr || cursor == nullptr) {
      return absl::InvalidArgumentError("db or cursor is NULL");
    }
    *cursor = nullptr;
    TF_ASSIGN_OR_RETURN(std::vector<Task> tasks, db->store->ListTasks());
    std::optional<std::string> only;
    if (fingerprint != nullptr) only = fingerprint;
    *cursor = new tilefarm_db_cursor{
        .next = BestFrom(*db, std::move(tasks), std::move(only))};
    return absl::OkStatus();
  });
}

int tilefarm_db_next(tilefarm_db_cursor* cursor,
                     const tilefarm_db_record** record, char** error) {
  bool done = false;
  const int code = Guarded(error, [&]() -> absl::Status {
    if (cursor == nullptr || record == nullptr) {
      return absl::InvalidArgumentError("cursor or record is NULL");
    }
    *record = nullptr;
    TF_ASSIGN_OR_RETURN(cursor->record, cursor->next());
    done = !cursor->record;
    if (done) return absl::OkStatus();
    const Record& found = *cursor->record;
    cursor->view = {
        .workload = found.workload_hash.c_str(),
        .program = found.program.c_str(),
        .target = found.target.c_str(),
        .trace = found.trace.c_str(),
        .device = found.device.c_str(),
        .status = tilefarm::database::StatusName(found.status).data(),
        .fingerprint = found.fingerprint.c_str(),
        .median_seconds = found.median_seconds,
        .verified = found.verified ? 1 : 0};
    *record = &cursor->view;
    return absl::OkStatus();
  });
  return code == TILEFARM_DB_OK && done ? TILEFARM_DB_DONE : code;
}

void tilefarm_db_cursor_close(tilefarm_db_cursor* cursor) { delete cursor; }

void tilefarm_db_match_free(tilefarm_db_match* match) {
  if (match == nullptr) return;
  std::free(match->program);
  std::free(match->trace);
  std::free(match->target);
  std::free(match->reason);
  *match = {};
}

void tilefarm_db_free(char* text) { std::free(text); }

#include "database/tilefarm_db.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/target/target.h"
#include "database/store.h"

struct tilefarm_db {
  std::unique_ptr<tilefarm::database::Store> store;
};

namespace {

using tilefarm::database::BestMatch;
using tilefarm::database::BestQuery;
using tilefarm::database::Store;

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

absl::Status Lookup(const tilefarm_db& db, const char* program,
                    const char* target, const char* fingerprint,
                    tilefarm_db_match* match) {
  BestQuery query;
  TF_ASSIGN_OR_RETURN(query.program, tilefarm::ir::ParseFunction(program));
  TF_ASSIGN_OR_RETURN(query.target, tilefarm::target::Parse(target));
  query.allow_stale = fingerprint == nullptr;
  if (fingerprint != nullptr) query.fingerprint = fingerprint;
  TF_ASSIGN_OR_RETURN(const BestMatch best, db.store->FindBest(query));
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
    return Lookup(*db, program, target, fingerprint, match);
  });
}

void tilefarm_db_match_free(tilefarm_db_match* match) {
  if (match == nullptr) return;
  std::free(match->program);
  std::free(match->trace);
  std::free(match->target);
  std::free(match->reason);
  *match = {};
}

void tilefarm_db_free(char* text) { std::free(text); }

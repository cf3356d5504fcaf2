// db stats, db export, db import: through the server, or on a file; db backup.
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/backup.h"
#include "database/store.h"
#include "server/cli/client.h"
#include "server/cli/commands.h"
#include "server/cli/exit_codes.h"
#include "server/cli/export_signature.h"
#include "server/cli/format.h"
#include "server/jobs/record_import.h"

namespace tilefarm::cli {
namespace {

using database::Store;

absl::StatusOr<database::Stats> GetStats(const Common& common,
                                         const DbOptions& options) {
  if (!options.db.empty()) {
    TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                        Store::Open(options.db, Store::Mode::kReadOnly));
    return store->GetStats();
  }
  Client client(common.server);
  TF_ASSIGN_OR_RETURN(const v1::DbStatsResponse response, client.DbStats());
  database::Stats stats;
  stats.records = response.records();
  stats.workloads = response.workloads();
  stats.by_status.insert(response.by_status().begin(),
                         response.by_status().end());
  return stats;
}

// The records that the options ask for, of the file or of the server; ends when
// `visit` returns false.
absl::Status ForEachRecord(
    const Common& common, const DbOptions& options,
    const std::function<bool(const database::Record&)>& visit) {
  const auto wanted = [&](const database::Record& record) {
    return !options.filter.Takes(record) || visit(record);
  };
  if (!options.db.empty()) {
    TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                        Store::Open(options.db, Store::Mode::kReadOnly));
    return store->ForEachRecord(wanted);
  }
  absl::Status parsed;
  bool ended = false;
  const absl::Status exported =
      Client(common.server).Export([&](const std::string& json) {
        const auto record = database::RecordFromJson(json);
        if (!record.ok()) {
          parsed = record.status();
          return false;
        }
        ended = !wanted(*record);
        return !ended;
      });
  TF_RETURN_IF_ERROR(parsed);
  return ended ? absl::OkStatus() : exported;
}

absl::Status Export(const Common& common, const DbOptions& options,
                    std::ostream& out) {
  std::optional<ExportSigner> signer;
  if (!options.sign.empty()) {
    TF_ASSIGN_OR_RETURN(signer, ExportSigner::Open(options.sign));
  }
  int64_t left = options.paging.limit > 0 ? options.paging.limit
                                          : std::numeric_limits<int64_t>::max();
  const auto write = [&](const std::string& json) {
    if (signer) signer->Add(json);
    out << json << "\n";
    return out.good();
  };
  if (options.db.empty() && options.filter.empty() &&
      options.paging.limit == 0) {
    // As the server has them.
    TF_RETURN_IF_ERROR(Client(common.server).Export(write));
  } else {
    TF_RETURN_IF_ERROR(
        ForEachRecord(common, options, [&](const database::Record& record) {
          return write(database::RecordToJson(record)) && --left > 0;
        }));
    if (!out.good()) {
      return absl::UnavailableError("the output could not be written");
    }
  }
  if (signer) {
    TF_ASSIGN_OR_RETURN(const std::string line, signer->Finish());
    out << line << "\n";
  }
  out.flush();
  if (!out.good()) {
    return absl::UnavailableError("the output could not be written");
  }
  return absl::OkStatus();
}

struct Imported {
  int64_t added = 0, known = 0, variants = 0;
};

// The next line with a record; false: there is none.
bool NextLine(std::istream& in, std::string& line) {
  while (std::getline(in, line)) {
    if (!IsSignatureLine(line)) return true;
  }
  return false;
}

absl::StatusOr<Imported> ImportLines(const Common& common,
                                     const DbOptions& options,
                                     std::istream& in) {
  if (options.db.empty()) {
    Client client(common.server);
    TF_ASSIGN_OR_RETURN(
        const v1::DbImportResponse response,
        client.Import([&](std::string* line) { return NextLine(in, *line); }));
    return Imported{response.added(), response.known(), response.variants()};
  }
  TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                      Store::Open(options.db, Store::Mode::kReadWrite));
  jobs::RecordImport import(*store);
  for (std::string line; NextLine(in, line);) {
    TF_RETURN_IF_ERROR(import.Add(line));
  }
  TF_RETURN_IF_ERROR(import.Finish());
  return Imported{import.added(), import.known(), import.variants()};
}

// A file without a name, for a copy that nobody else can change.
absl::StatusOr<std::fstream> UnnamedFile() {
  std::error_code error;
  std::string name =
      (std::filesystem::temp_directory_path(error) / "tune-import-XXXXXX")
          .string();
  const int fd = mkstemp(name.data());
  if (error || fd < 0) {
    return absl::UnavailableError(
        absl::StrCat("no temporary file can be made: ", name));
  }
  close(fd);
  std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
  unlink(name.c_str());
  if (!file) {
    return absl::UnavailableError(absl::StrCat(name, ": cannot be opened"));
  }
  return file;
}

absl::StatusOr<Imported> Import(const Common& common, const DbOptions& options,
                                std::istream& in) {
  if (options.verify.empty()) return ImportLines(common, options, in);
  TF_ASSIGN_OR_RETURN(std::fstream copy, UnnamedFile());
  TF_RETURN_IF_ERROR(VerifyExport(options.verify, in, copy));
  copy.flush();
  copy.seekg(0);
  if (!copy) {
    return absl::UnavailableError(
        "no room for a copy of the export in the folder of temporary files");
  }
  return ImportLines(common, options, copy);
}

}  // namespace

int DbStats(const Common& common, const DbOptions& options) {
  const auto stats = GetStats(common, options);
  if (!stats.ok()) return Fail(stats.status());
  if (common.json) {
    std::printf("%s\n",
                StatsJson(stats->records, stats->workloads, stats->by_status)
                    .dump()
                    .c_str());
    return kSuccess;
  }
  std::printf("%lld records of %lld workloads\n",
              static_cast<long long>(stats->records),
              static_cast<long long>(stats->workloads));
  for (const auto& [status, count] : stats->by_status) {
    std::printf("  %-17s %lld\n", status.c_str(),
                static_cast<long long>(count));
  }
  return kSuccess;
}

int DbList(const Common& common, const DbOptions& options) {
  RecordGroups groups;
  const absl::Status read =
      ForEachRecord(common, options, [&](const database::Record& record) {
        groups.Add(record);
        return true;
      });
  if (!read.ok()) return Fail(read);
  const std::vector<RecordGroup> page = groups.Take(options.paging);
  std::printf("%s", common.json
                        ? absl::StrCat(GroupsJson(page).dump(), "\n").c_str()
                        : GroupsTable(page).c_str());
  return kSuccess;
}

int DbExport(const Common& common, const DbOptions& options) {
  absl::Status status;
  if (options.file.empty() || options.file == "-") {
    status = Export(common, options, std::cout);
  } else {
    std::ofstream file(options.file, std::ios::binary);
    status = file ? Export(common, options, file)
                  : absl::NotFoundError(
                        absl::StrCat(options.file, ": cannot be written"));
  }
  return status.ok() ? kSuccess : Fail(status);
}

int DbImport(const Common& common, const DbOptions& options) {
  absl::StatusOr<Imported> imported;
  if (options.file == "-") {
    imported = Import(common, options, std::cin);
  } else {
    // A folder opens like a file and then has no lines.
    std::error_code error;
    std::ifstream file(options.file, std::ios::binary);
    if (!file || std::filesystem::is_directory(options.file, error)) {
      return Fail(
          absl::NotFoundError(absl::StrCat(options.file, ": cannot be read")));
    }
    imported = Import(common, options, file);
  }
  if (!imported.ok()) {
    return Fail(absl::Status(
        imported.status().code(),
        absl::StrCat(options.file, ": ", imported.status().message())));
  }
  if (imported->variants > 0) {
    std::fprintf(stderr,
                 "tune: warning: %lld %s another program than the workload's: "
                 "kept as variants, not verified\n",
                 static_cast<long long>(imported->variants),
                 imported->variants == 1 ? "record holds" : "records hold");
  }
  if (common.json) {
    std::printf("%s\n", nlohmann::ordered_json{{"added", imported->added},
                                               {"known", imported->known},
                                               {"variants", imported->variants}}
                            .dump()
                            .c_str());
  } else {
    std::printf("%lld records added, %lld known before\n",
                static_cast<long long>(imported->added),
                static_cast<long long>(imported->known));
  }
  return kSuccess;
}

int DbBackup(const Common& common, const DbOptions& options) {
  if (options.db.empty()) {
    std::fprintf(stderr,
                 "tune: backup copies a file on the server's machine: --db is "
                 "missing\n");
    return kBadUsage;
  }
  const auto facts = database::Backup(options.db, options.file);
  if (!facts.ok()) return Fail(facts.status());
  if (common.json) {
    std::printf("%s\n", nlohmann::ordered_json{{"file", options.file},
                                               {"bytes", facts->bytes},
                                               {"records", facts->records},
                                               {"jobs", facts->jobs}}
                            .dump()
                            .c_str());
  } else {
    std::printf("%s: %lld records, %lld jobs, %lld bytes\n",
                options.file.c_str(), static_cast<long long>(facts->records),
                static_cast<long long>(facts->jobs),
                static_cast<long long>(facts->bytes));
  }
  return kSuccess;
}

}  // namespace tilefarm::cli

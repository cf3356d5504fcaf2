// db revalidate: measures the best records of former compilers again.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "database/record.h"
#include "database/stale_best.h"
#include "server/cli/client.h"
#include "server/cli/commands.h"
#include "server/cli/exit_codes.h"
#include "server/cli/format.h"

namespace tilefarm::cli {
namespace {

using database::Record;

// Calls that wait at the same time, so that several devices have work.
constexpr int kCalls = 8;

struct Work {
  std::string fingerprint;  // of the server's compiler
  std::vector<Record> stale;
};

absl::StatusOr<Work> FindWork(Client& client, const DbOptions& options) {
  Work work;
  TF_ASSIGN_OR_RETURN(const v1::DbStatsResponse stats, client.DbStats());
  work.fingerprint = stats.fingerprint();
  if (work.fingerprint.empty()) {
    return absl::UnimplementedError(
        "this server is older than db revalidate: it does not say which "
        "compiler it has");
  }
  database::StaleBest best(work.fingerprint, static_cast<size_t>(options.best));
  absl::Status bad;
  TF_RETURN_IF_ERROR(client.Export([&](const std::string& json) {
    absl::StatusOr<Record> record = database::RecordFromJson(json);
    bad = record.status();
    if (!bad.ok()) return false;
    best.Add(*std::move(record));
    return true;
  }));
  TF_RETURN_IF_ERROR(bad);
  work.stale = std::move(best).Take();
  return work;
}

absl::StatusOr<Record> MeasureAgain(Client& client, const Record& stale) {
  v1::MeasureRequest request;
  request.set_program(stale.program);
  request.set_trace(stale.trace);
  request.set_target(stale.target);
  request.set_user(UserName());
  TF_ASSIGN_OR_RETURN(const v1::MeasureResponse response,
                      client.Measure(request));
  return database::RecordFromJson(response.record_json());
}

// One line for each record that was measured.
bool ReportOne(const Common& common, const Record& stale,
               const absl::StatusOr<Record>& again) {
  const bool ok = again.ok() && again->status == database::Status::kOk;
  const std::string error =
      !again.ok() ? std::string(again.status().message())
      : ok        ? ""
           : absl::StrCat(std::string(database::StatusName(again->status)),
                          ": ", again->error);
  if (common.json) {
    nlohmann::ordered_json line{{"workload", stale.workload_hash},
                                {"target", stale.target},
                                {"stale_fingerprint", stale.fingerprint},
                                {"stale_seconds", stale.median_seconds},
                                {"seconds", nullptr},
                                {"device", nullptr},
                                {"error", nullptr}};
    if (ok) {
      line["seconds"] = again->median_seconds;
      line["device"] = again->device;
    } else {
      line["error"] = error;
    }
    std::printf("%s\n",
                line.dump(-1, ' ', false,
                          nlohmann::ordered_json::error_handler_t::replace)
                    .c_str());
  } else {
    const std::string what = absl::StrCat(
        stale.workload_hash.substr(0, 12), "  ", stale.target, "  ",
        Seconds(stale.median_seconds), " of ", stale.fingerprint, " -> ");
    std::printf(
        "%s%s\n", what.c_str(),
        ok ? absl::StrCat(Seconds(again->median_seconds), " on ", again->device)
                 .c_str()
           : error.c_str());
  }
  std::fflush(stdout);
  return ok;
}

}  // namespace

int DbRevalidate(const Common& common, const DbOptions& options) {
  if (!options.db.empty()) {
    std::fprintf(stderr,
                 "tune: revalidate measures on the server's devices: it takes "
                 "no --db\n");
    return kBadUsage;
  }
  Client client(common.server);
  const absl::StatusOr<Work> work = FindWork(client, options);
  if (!work.ok()) return Fail(work.status());

  Mutex mutex;  // of the output
  int failed = 0;
  std::atomic<size_t> next = 0;
  const auto measure = [&] {
    while (true) {
      const size_t i = next++;
      if (i >= work->stale.size()) return;
      const auto again = MeasureAgain(client, work->stale[i]);
      MutexLock lock(mutex);
      if (!ReportOne(common, work->stale[i], again)) ++failed;
    }
  };
  std::vector<std::thread> threads;
  const size_t calls = std::min<size_t>(kCalls, work->stale.size());
  for (size_t i = 0; i < calls; ++i) threads.emplace_back(measure);
  for (std::thread& thread : threads) thread.join();
  if (!common.json) {
    std::printf("%zu of %zu measured again for %s\n",
                work->stale.size() - static_cast<size_t>(failed),
                work->stale.size(), work->fingerprint.c_str());
  }
  return failed == 0 ? kSuccess : kFailure;
}

}  // namespace tilefarm::cli

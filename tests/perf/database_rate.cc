// How fast the database is with many records, and how large:
//
//   database_rate --records 1000000 --workloads 10000
//
// Makes records of as many matrix products, half of them measured in full,
// imports them from JSON Lines as `tune db import` does, exports them, and
// looks up the best of random workloads through the C interface and by gRPC, of
// a whole server in this process, over the loopback interface. Prints one JSON
// object. Rates are per second of this process's CPU time, since the machine
// may be busy, and of wall time; lookups are timed one by one in wall time.
// All files are in a temporary folder, which is removed. --keep FILE also
// leaves the database there, and --db FILE measures lookups and the export of
// such a file.
#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "database/store.h"
#include "database/tilefarm_db.h"
#include "proto/tilefarm/v1/tune.grpc.pb.h"
#include "server/jobs/record_import.h"
#include "server/services/server.h"

namespace tilefarm {
namespace {

using database::Record;
using database::Store;

constexpr char kTarget[] = "x86-64:znver4,cores=1";
constexpr char kFingerprint[] = "llvm-19.1.7+tf1";

// A product with a bias and a ReLU, of (n x k) and (k x m).
constexpr char kProgram[] = R"py(@T.prim_func
def main(A: T.Buffer((NN, KK), "float32"), W: T.Buffer((KK, MM), "float32"), bias: T.Buffer((MM,), "float32"), out: T.Buffer((NN, MM), "float32")):
    C = T.alloc_buffer((NN, MM), "float32")
    for i, j, k in T.grid(NN, MM, KK):
        with T.block("C"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[v_i, v_j] = T.float32(0)
            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * W[v_k, v_j]
    for i, j in T.grid(NN, MM):
        with T.block("out"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            out[v_i, v_j] = T.max(C[v_i, v_j] + bias[v_j], T.float32(0))
)py";

struct Workload {
  std::string program;
  std::string hash;
};

Workload MakeWorkload(int index) {
  Workload workload;
  workload.program = absl::StrReplaceAll(
      kProgram, {{"NN", absl::StrCat(16 * (1 + index % 25))},
                 {"MM", absl::StrCat(16 * (1 + index / 25 % 20))},
                 {"KK", absl::StrCat(8 * (1 + index / 500))}});
  workload.hash =
      ir::WorkloadHash(*ir::ParseFunction(workload.program).value());
  return workload;
}

std::string MakeTrace(std::mt19937_64& draw) {
  const auto tile = [&](int n) {
    std::vector<std::string> factors;
    for (int i = 0; i < n; ++i) {
      factors.push_back(absl::StrCat(int64_t{1} << draw() % 5));
    }
    return absl::StrJoin(factors, ", ");
  };
  std::string trace =
      "b0 = sch.get_block(name=\"C\", func_name=\"main\")\n"
      "b1 = sch.get_block(name=\"out\", func_name=\"main\")\n"
      "l2, l3, l4 = sch.get_loops(block=b0)\n";
  for (int loop = 2; loop < 5; ++loop) {
    const std::string v = absl::StrCat("v", 10 * loop);
    absl::StrAppend(&trace, v, "a, ", v, "b, ", v, "c, ", v,
                    "d = sch.sample_perfect_tile(loop=l", loop,
                    ", n=4, max_innermost_factor=64, decision=[", tile(4),
                    "])\nl", 10 * loop, ", l", 10 * loop + 1, ", l",
                    10 * loop + 2, ", l", 10 * loop + 3, " = sch.split(loop=l",
                    loop, ", factors=[", v, "a, ", v, "b, ", v, "c, ", v,
                    "d])\n");
  }
  return absl::StrCat(trace,
                      "sch.reorder(l20, l30, l21, l31, l40, l22, l32, l41, "
                      "l23, l33)\nsch.reverse_compute_at(block=b1, loop=l31)\n"
                      "sch.enter_postproc()\nsch.parallel(loop=l20)\n"
                      "sch.vectorize(loop=l33)\n",
                      draw() % 2 == 0 ? "sch.unroll(loop=l23)\n" : "");
}

Record MakeRecord(const Workload& workload, int64_t index,
                  std::mt19937_64& draw) {
  const auto unit = [&] { return static_cast<double>(draw() >> 11) * 0x1p-53; };
  Record r;
  r.candidate_id = Sha256Hex(absl::StrCat("candidate ", index));
  r.workload_hash = workload.hash;
  r.program = workload.program;
  r.target = kTarget;
  r.trace = MakeTrace(draw);
  r.device = "box@96891fbfd1f0";
  r.device_model = "AMD EPYC 9R14; znver4";
  const bool failed = draw() % 8 == 0;
  if (failed) {
    r.status = database::Status::kCompileTimeout;
    r.error = "the builder was stopped after 10 s";
    r.median_seconds = r.ci_low_seconds = r.ci_high_seconds = std::nan("");
  } else {
    r.verified = true;
    r.stopped_early = draw() % 2 == 0;
    r.median_seconds = 1e-5 * (1 + 9 * unit());
    for (int i = r.stopped_early ? 5 : 20; i > 0; --i) {
      r.seconds.push_back(r.median_seconds * (0.99 + 0.02 * unit()));
    }
    r.ci_low_seconds = r.median_seconds * 0.995;
    r.ci_high_seconds = r.median_seconds * 1.005;
    r.max_abs_error = 1e-6 * unit();
    r.max_rel_error = unit();
  }
  r.compile_seconds = 0.05 + 0.1 * unit();
  r.isolation = "seccomp+netns";
  r.device_state =
      absl::StrCat("{\"clock_mhz\":", 2596 + draw() % 1000,
                   ",\"load\":0.21,\"canary_seconds\":0.00000",
                   9000 + draw() % 999, ",\"retaken\":1,\"shared\":0}");
  r.fingerprint = kFingerprint;
  r.code_digest = Sha256Hex(absl::StrCat("code ", index));
  r.job_id = absl::StrCat("job-", Sha256Hex(workload.hash).substr(0, 12));
  r.model_score = absl::StrCat(unit());
  r.sequence = index;
  r.recorded_at = "2026-11-24T02:44:48.471Z";
  return r;
}

class Stopwatch {
 public:
  double wall() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin_)
        .count();
  }
  double cpu() const {
    return static_cast<double>(std::clock() - cpu_begin_) / CLOCKS_PER_SEC;
  }

 private:
  std::chrono::steady_clock::time_point begin_ =
      std::chrono::steady_clock::now();
  std::clock_t cpu_begin_ = std::clock();
};

nlohmann::ordered_json Rate(int64_t count, const Stopwatch& watch) {
  return {{"per_cpu_second", static_cast<double>(count) / watch.cpu()},
          {"per_second", static_cast<double>(count) / watch.wall()}};
}

// Microseconds at the quantile.
double Quantile(std::vector<double>& seconds, double quantile) {
  std::sort(seconds.begin(), seconds.end());
  const auto at =
      static_cast<size_t>(quantile * static_cast<double>(seconds.size() - 1));
  return 1e6 * seconds[at];
}

struct Options {
  int64_t records = 1'000'000;
  int workloads = 10'000;
  int lookups = 20'000;
  std::string db, keep;
};

nlohmann::ordered_json Times(std::vector<double>& seconds,
                             const Stopwatch& watch) {
  const auto count = static_cast<double>(seconds.size());
  return {{"p50", Quantile(seconds, 0.5)},
          {"p99", Quantile(seconds, 0.99)},
          {"mean_cpu", 1e6 * watch.cpu() / count}};
}

absl::StatusOr<nlohmann::ordered_json> LookUpByC(
    const std::string& path, const std::vector<Workload>& all, int lookups,
    std::mt19937_64& draw) {
  tilefarm_db* db = nullptr;
  if (tilefarm_db_open(path.c_str(), &db, nullptr) != TILEFARM_DB_OK) {
    return absl::UnavailableError("the C interface cannot open " + path);
  }
  std::vector<double> seconds;
  const Stopwatch all_lookups;
  for (int i = 0; i < lookups; ++i) {
    const Workload& workload = all[draw() % all.size()];
    tilefarm_db_match match;
    const Stopwatch watch;
    const int code = tilefarm_db_best_hash(db, workload.hash.c_str(), kTarget,
                                           kFingerprint, &match, nullptr);
    seconds.push_back(watch.wall());
    if (code != TILEFARM_DB_OK) {
      return absl::InternalError(absl::StrCat("a lookup gave ", code));
    }
    tilefarm_db_match_free(&match);
  }
  nlohmann::ordered_json report = Times(seconds, all_lookups);
  tilefarm_db_close(db);
  return report;
}

absl::StatusOr<nlohmann::ordered_json> LookUpByGrpc(
    const std::string& path, const std::vector<Workload>& all, int lookups,
    std::mt19937_64& draw) {
  services::ServerOptions options;
  options.database_path = path;
  options.listen = "127.0.0.1:0";
  options.fingerprint = kFingerprint;
  options.release = "database_rate";
  TF_ASSIGN_OR_RETURN(const std::unique_ptr<services::Server> server,
                      services::Server::Start(std::move(options)));
  const auto stub = v1::Tune::NewStub(grpc::CreateChannel(
      server->address(), grpc::InsecureChannelCredentials()));
  std::vector<double> seconds;
  const Stopwatch all_lookups;
  for (int i = 0; i < lookups; ++i) {
    v1::BestRequest request;
    request.set_workload(all[draw() % all.size()].hash);
    request.set_target(kTarget);
    request.set_fingerprint(kFingerprint);
    grpc::ClientContext context;
    v1::BestResponse response;
    const Stopwatch watch;
    const grpc::Status status = stub->Best(&context, request, &response);
    seconds.push_back(watch.wall());
    if (!status.ok() || response.record_json().empty()) {
      return absl::InternalError("a lookup by gRPC failed: " +
                                 status.error_message());
    }
  }
  return Times(seconds, all_lookups);
}

absl::Status Import(const Options& options, const std::vector<Workload>& all,
                    const std::string& folder, const std::string& path,
                    std::mt19937_64& draw, nlohmann::ordered_json& report) {
  const std::string lines = folder + "/records.jsonl";
  {
    std::ofstream out(lines);
    for (int64_t i = 0; i < options.records; ++i) {
      // A job tunes one workload at a time.
      const Workload& workload =
          all[static_cast<size_t>(i * options.workloads / options.records)];
      out << database::RecordToJson(MakeRecord(workload, i, draw)) << "\n";
    }
    if (!out.flush()) return absl::UnavailableError("cannot write " + lines);
  }
  const Stopwatch watch;
  {
    TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                        Store::Open(path, Store::Mode::kReadWrite));
    jobs::RecordImport import(*store);
    std::ifstream in(lines);
    for (std::string line; std::getline(in, line);) {
      TF_RETURN_IF_ERROR(import.Add(line));
    }
    TF_RETURN_IF_ERROR(import.Finish());
    report["import"] = Rate(import.added(), watch);
  }
  std::filesystem::remove(lines);
  return absl::OkStatus();
}

absl::Status Measure(const std::string& folder, const Options& options) {
  std::vector<Workload> all;
  for (int i = 0; i < options.workloads; ++i) all.push_back(MakeWorkload(i));
  std::mt19937_64 draw(1);
  const std::string lines = folder + "/records.jsonl";
  const std::string path = options.db.empty() ? folder + "/a.db" : options.db;
  nlohmann::ordered_json report = {{"workloads", options.workloads}};
  if (options.db.empty()) {
    TF_RETURN_IF_ERROR(Import(options, all, folder, path, draw, report));
  }
  report["database_megabytes"] =
      1e-6 * static_cast<double>(std::filesystem::file_size(path));
  {
    const Stopwatch watch;
    TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                        Store::Open(path, Store::Mode::kReadOnly));
    std::ofstream out(lines);
    int64_t count = 0;
    TF_RETURN_IF_ERROR(store->ForEachRecord([&](const Record& record) {
      out << database::RecordToJson(record) << "\n";
      ++count;
      return out.good();
    }));
    report["records"] = count;
    report["export"] = Rate(count, watch);
  }
  std::filesystem::remove(lines);
  TF_ASSIGN_OR_RETURN(report["lookup_microseconds"],
                      LookUpByC(path, all, options.lookups, draw));
  TF_ASSIGN_OR_RETURN(report["grpc_lookup_microseconds"],
                      LookUpByGrpc(path, all, options.lookups, draw));
  if (!options.keep.empty()) {
    std::filesystem::copy_file(path, options.keep);
  }
  std::cout << report.dump(2) << "\n";
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Size and speed of a database with many records.");
  auto* records =
      app.add_option("--records", options.records)->check(CLI::PositiveNumber);
  app.add_option("--workloads", options.workloads)
      ->check(CLI::Range(1, 10'000));
  app.add_option("--lookups", options.lookups)->check(CLI::PositiveNumber);
  auto* keep = app.add_option("--keep", options.keep,
                              "Leave a copy of the database here");
  app.add_option("--db", options.db,
                 "Measure export and lookups of this file, made by --keep")
      ->excludes(records)
      ->excludes(keep);
  CLI11_PARSE(app, argc, argv);
  std::string folder =
      (std::filesystem::temp_directory_path() / "tilefarm-rate-XXXXXX")
          .string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::cerr << "database_rate: cannot make " << folder << "\n";
    return 1;
  }
  const absl::Status status = Measure(folder, options);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (status.ok()) return 0;
  std::cerr << "database_rate: " << status << "\n";
  return 1;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) { return tilefarm::Main(argc, argv); }

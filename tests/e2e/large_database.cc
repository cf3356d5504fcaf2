// Makes a database with a job of 10,000 trials, 1,000 devices and histories of
// benchmarks, to see whether pages can show them:
//
//   large_database FILE
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "database/store.h"
#include "server/jobs/job.h"

namespace tilefarm {
namespace {

constexpr int kTrials = 10'000;
constexpr int kDevices = 1000;
constexpr char kTarget[] = "x86-64:znver4,cores=1";
constexpr char kProgram[] = R"py(@T.prim_func
def main(A: T.Buffer((1024, 64), "float32"), B: T.Buffer((1024, 64), "float32")):
    for i, j in T.grid(1024, 64):
        with T.block("B"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            B[v_i, v_j] = A[v_i, v_j] + T.float32(1)
)py";

// Times fall as a search goes on; one in twenty fails.
database::Record MakeRecord(int trial, const jobs::TaskSpec& task,
                            const std::string& job, Rng& rng) {
  const double noise = static_cast<double>(rng.Below(1000)) / 1000;
  const double best = 1e-3 * (1 + 9.0 / (1 + trial / 50.0));
  database::Record record;
  record.candidate_id = Sha256Hex(absl::StrCat("candidate ", trial));
  record.workload_hash = task.workload_hash;
  record.program = task.program;
  record.target = task.target;
  record.trace = absl::StrFormat(
      "b0 = sch.get_block(name=\"B\", func_name=\"main\")\n"
      "l1, l2 = sch.get_loops(block=b0)\n"
      "v3, v4 = sch.sample_perfect_tile(loop=l1, n=2, "
      "max_innermost_factor=64, decision=[%d, %d])\n",
      1024 >> (trial % 7), 1 << (trial % 7));
  record.device = absl::StrCat("board.", trial % 4, "@0123456789ab");
  record.device_model = "AMD EPYC 9R14; znver4";
  record.fingerprint = "llvm-19.1.7+tf1";
  record.job_id = job;
  record.sequence = trial + 1;
  record.model_score = absl::StrFormat("%.4g", 0.2 + 0.8 * noise);
  record.recorded_at = absl::FormatTime(
      "%Y-%m-%dT%H:%M:%E3SZ",
      absl::FromUnixSeconds(1'780'000'000) + trial * absl::Milliseconds(250),
      absl::UTCTimeZone());
  record.compile_seconds = 0.05;
  if (trial % 20 == 7) {
    record.status = trial % 40 == 7 ? database::Status::kRunError
                                    : database::Status::kCompileError;
    record.error = "made to fail";
    return record;
  }
  record.verified = true;
  record.stopped_early = noise > 0.6;
  record.median_seconds = best * (1 + 4 * noise * noise);
  record.seconds = {record.median_seconds};
  record.ci_low_seconds = record.median_seconds * 0.99;
  record.ci_high_seconds = record.median_seconds * 1.01;
  return record;
}

// A benchmark got faster, slower for a reason, and slower for none.
constexpr double kLevels[] = {1.00e-3, 0.91e-3, 0.95e-3, 1.03e-3};
constexpr int kPointsOfLevel = 30;

absl::Status AddHistories(database::Store& store, Rng& rng) {
  std::vector<database::HistoryRow> rows;
  for (const char* benchmark : {"matmul 512", "layer norm"}) {
    const bool moves = benchmark[0] == 'm';
    const int points = kPointsOfLevel * static_cast<int>(std::size(kLevels));
    for (int i = 0; i < points; ++i) {
      const double noise =
          1 + (static_cast<double>(rng.Below(1000)) - 500) / 5e4;
      const double seconds =
          noise * (moves ? kLevels[i / kPointsOfLevel] : 0.2e-3);
      database::HistoryRow row;
      row.series = "kernels";
      row.benchmark = benchmark;
      row.device_class = "AMD EPYC 9R14; znver4";
      row.branch = "main";
      row.commit = Sha256Hex(absl::StrCat("commit ", i)).substr(0, 40);
      row.at = absl::FormatTime(
          "%Y-%m-%dT%H:%M:%SZ",
          absl::FromUnixSeconds(1'770'000'000) + i * absl::Hours(12),
          absl::UTCTimeZone());
      row.device = "board.0001";
      row.seconds = seconds;
      row.low_seconds = seconds * 0.995;
      row.high_seconds = seconds * 1.006;
      row.canary_seconds = 1e-4;
      if (i > 0) {
        row.baseline_commit = rows.back().commit;
        row.ratio = moves && i % kPointsOfLevel == 0 ? 1.05 : 1;
        row.ratio_low = row.ratio * 0.99;
        row.ratio_high = row.ratio * 1.01;
        row.clusters = 12;
        row.verdict = row.ratio > 1 ? "slower" : "same";
      }
      rows.push_back(row);
    }
  }
  TF_RETURN_IF_ERROR(
      store.regression_tables().AppendHistory("large", rows).status());
  return store.regression_tables().Acknowledge(
      {.series = "kernels",
       .benchmark = "matmul 512",
       .branch = "main",
       .commit = rows[2 * kPointsOfLevel].commit,
       .reason = "Sums are made in double precision now",
       .user = "ann",
       .at = "2026-03-05T09:30:00Z"});
}

absl::Status Fill(database::Store& store) {
  jobs::JobSpec spec;
  spec.request_id = "large";
  spec.user = "ann";
  spec.program = kProgram;
  spec.program_name = "large.py";
  spec.targets = {{kTarget, std::nullopt}};
  spec.trials = kTrials;
  TF_RETURN_IF_ERROR(jobs::ResolveJob(store, spec));
  const std::string id = "job-0000001a29e0";
  TF_RETURN_IF_ERROR(store.AddJob(jobs::JobToRow(id, spec)).status());
  Rng rng(1);
  std::vector<database::Record> records;
  for (int trial = 0; trial < kTrials; ++trial) {
    records.push_back(MakeRecord(trial, spec.tasks.front(), id, rng));
  }
  TF_RETURN_IF_ERROR(store.AddRecords(records).status());
  TF_RETURN_IF_ERROR(store.UpdateJob(id, "done", ""));
  std::vector<database::DeviceRow> devices;
  for (int i = 0; i < kDevices; ++i) {
    devices.push_back({.name = absl::StrFormat("board.%04d", i),
                       .operator_state = i % 50 == 0 ? "drained" : "",
                       .model = "AMD EPYC 9R14",
                       .target = kTarget,
                       .last_seen = "2026-05-28T12:00:00Z"});
  }
  TF_RETURN_IF_ERROR(store.device_tables().PutDevices(devices, {}));
  return AddHistories(store, rng);
}

int Main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: large_database FILE\n");
    return 2;
  }
  std::remove(argv[1]);
  const auto store =
      database::Store::Open(argv[1], database::Store::Mode::kReadWrite);
  const absl::Status status = store.ok() ? Fill(**store) : store.status();
  if (!status.ok()) {
    std::fprintf(stderr, "large_database: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) { return tilefarm::Main(argc, argv); }

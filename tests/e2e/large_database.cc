// Makes a database with a job of 10,000 trials and 1,000 devices, to see
// whether pages can show them:
//
//   large_database FILE
#include <cstdio>
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
  return store.device_tables().PutDevices(devices, {});
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

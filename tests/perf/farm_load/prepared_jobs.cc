#include "tests/perf/farm_load/prepared_jobs.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/target/target.h"
#include "database/store.h"
#include "server/jobs/job.h"
#include "server/jobs/job_log.h"
#include "server/jobs/search_factory.h"

namespace tilefarm::load {
namespace {

constexpr int kDistinct = 64;   // per job
constexpr int64_t kLine = 256;  // candidates per line of the log

constexpr char kMatmul[] = R"(from tvm.script import tir as T


@T.prim_func
def mm_relu(A: T.Buffer(($0, $0), "float32"),
            B: T.Buffer(($0, $0), "float32"),
            C: T.Buffer(($0, $0), "float32")):
    Y = T.alloc_buffer(($0, $0), dtype="float32")
    for i, j, k in T.grid($0, $0, $0):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid($0, $0):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
)";

absl::StatusOr<std::vector<search::Proposal>> Propose(
    const jobs::JobSpec& spec, const target::Target& target) {
  const jobs::SearchFactory factory = jobs::RealSearchFactory();
  const jobs::TaskSpec& task = spec.tasks.front();
  TF_ASSIGN_OR_RETURN(const ir::PrimFuncPtr function, jobs::ParseTask(task));
  TF_ASSIGN_OR_RETURN(const std::unique_ptr<search::Search> search,
                      factory.make_search({
                          .job = spec,
                          .task_id = jobs::TaskId(task),
                          .function = function,
                          .target = target,
                          .fingerprint = driver::Fingerprint(),
                          .model = factory.make_model(spec),
                      }));
  return search->Propose(kDistinct);
}

absl::Status PrepareJob(database::Store& store, int index, int64_t candidates) {
  jobs::JobSpec spec;
  spec.request_id = absl::StrCat("load-", index);
  spec.user = absl::StrCat("user-", index);
  spec.program = absl::Substitute(kMatmul, 64 + 32 * index);
  spec.program_name = absl::StrCat("mm_relu_", 64 + 32 * index, ".py");
  spec.trials = candidates;
  spec.model = spec.search = "random";
  const target::CacheSizes caches = {
      .l1_bytes = 48 << 10, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
  spec.targets = {{.key = kWantedTarget, .caches = caches}};
  TF_RETURN_IF_ERROR(jobs::ResolveJob(store, spec));
  TF_ASSIGN_OR_RETURN(target::Target target, target::Parse(kWantedTarget));
  target.caches = caches;
  target.caches_known = true;
  TF_ASSIGN_OR_RETURN(const std::vector<search::Proposal> proposals,
                      Propose(spec, target));
  if (proposals.empty()) return absl::InternalError("nothing was proposed");

  const std::string id = absl::StrCat("job-load-", index);
  TF_RETURN_IF_ERROR(store.AddJob(jobs::JobToRow(id, spec)).status());
  TF_RETURN_IF_ERROR(store.UpdateJob(id, "running", ""));
  const std::string task_id = jobs::TaskId(spec.tasks.front());
  std::vector<std::string> lines;
  for (int64_t next = 0; next < candidates;) {
    std::vector<jobs::LoggedProposal> logged;
    while (next < candidates && static_cast<int64_t>(logged.size()) < kLine) {
      const search::Proposal& proposal =
          proposals[static_cast<size_t>(next) % proposals.size()];
      logged.push_back(
          {.candidate_id = Sha256Hex(absl::StrCat(id, "/", next)),
           .task_id = task_id,
           .trace = proposal.trace,
           .scheduled_hash = proposal.scheduled_hash,
           .model_score = absl::StrFormat("%.6g", proposal.predicted),
           .sequence = ++next});
    }
    lines.push_back(jobs::ProposeLine(task_id, static_cast<int>(logged.size()),
                                      logged, absl::Now()));
  }
  return store.AppendJobLog(id, lines);
}

}  // namespace

absl::Status PrepareJobs(const std::string& database, int jobs,
                         int64_t candidates) {
  TF_ASSIGN_OR_RETURN(
      const std::unique_ptr<database::Store> store,
      database::Store::Open(database, database::Store::Mode::kReadWrite));
  for (int i = 0; i < jobs; ++i) {
    TF_RETURN_IF_ERROR(
        PrepareJob(*store, i, (candidates + jobs - 1 - i) / jobs));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::load

#include "server/jobs/canary.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "server/jobs/remeasure.h"

namespace tilefarm::jobs {
namespace {

constexpr char kProgram[] = R"(from tvm.script import tir as T


@T.prim_func
def main(A: T.Buffer((96, 96), "float32"),
         B: T.Buffer((96, 96), "float32"),
         C: T.Buffer((96, 96), "float32")):
    for i, j, k in T.grid(96, 96, 96):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

// Computes sixteen columns of a row at a time, vectorised.
constexpr char kTrace[] = R"(b0 = sch.get_block(name="C", func_name="main")
l1, l2, l3 = sch.get_loops(block=b0)
l4, l5 = sch.split(loop=l2, factors=[6, 16])
sch.reorder(l1, l4, l3, l5)
sch.vectorize(loop=l5)
b6 = sch.decompose_reduction(block=b0, loop=l3)
)";

// For GPUs: a block for each row, a thread for each column.
constexpr char kGpuTrace[] = R"(b0 = sch.get_block(name="C", func_name="main")
l1, l2, l3 = sch.get_loops(block=b0)
sch.bind(loop=l1, thread_axis="blockIdx.x")
sch.bind(loop=l2, thread_axis="threadIdx.x")
)";

}  // namespace

std::optional<farm::WorkItem> MakeCanary(const target::Target& device) {
  database::Record record;
  record.program = kProgram;
  record.trace = device.is_gpu() ? kGpuTrace : kTrace;
  target::Target one_core = device;
  one_core.cores = 1;
  record.target = one_core.Key();
  auto item = ItemFromRecord(record);
  if (!item.ok()) {
    Log(LogLevel::kError, "jobs",
        absl::StrCat("no canary for ", record.target, ": ",
                     item.status().ToString()));
    return std::nullopt;
  }
  item->purpose = farm::Purpose::kCanary;
  item->options.min_samples = 7;
  item->options.max_samples = 15;
  item->options.target_time = absl::Milliseconds(10);
  return *std::move(item);
}

std::function<std::optional<farm::WorkItem>(const target::Target&)>
CanaryMaker() {
  struct Known {
    Mutex mutex;
    std::map<std::string, std::optional<farm::WorkItem>> by_target
        ABSL_GUARDED_BY(mutex);
  };
  return [known = std::make_shared<Known>()](const target::Target& device) {
    MutexLock lock(known->mutex);
    const auto [at, is_new] = known->by_target.try_emplace(device.Key());
    if (is_new) at->second = MakeCanary(device);
    return at->second;
  };
}

}  // namespace tilefarm::jobs

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// The number of vectors of partial results, so that additions are independent
// of each other. A chunk has kRowsOfLanes such groups, so that combining
// partial results, with one exponential for each, is a small part of the work.
constexpr int64_t kVectors = 4;
constexpr int64_t kRowsOfLanes = 16;
// Shorter rows stay in the L1 cache from one pass to the next.
constexpr int64_t kMinRowBytes = 16 << 10;

// Whether passes over the terms read from memory: rows exceed the L1 cache, and
// the input and the result together exceed the last-level cache.
bool ComesFromMemory(const ir::BlockNode& sum, const target::Target& target) {
  const int64_t row = 4 * ProductOf(sum, ir::IterType::kReduce);
  const int64_t rows = ProductOf(sum, ir::IterType::kSpatial);
  return row >= kMinRowBytes && 2 * row * rows > target.caches.l3_bytes;
}

// Blocks that read results of `producers` and are not among them, in the order
// in which they are found.
absl::StatusOr<std::vector<BlockRv>> Readers(
    Schedule& schedule, const std::vector<BlockRv>& producers) {
  std::vector<BlockRv> result;
  std::vector<const ir::BlockNode*> known;
  for (const BlockRv producer : producers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(producer));
    known.push_back(node.get());
  }
  for (const BlockRv producer : producers) {
    TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> readers,
                        schedule.GetConsumers(producer));
    for (const BlockRv reader : readers) {
      TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(reader));
      if (absl::c_linear_search(known, node.get())) continue;
      known.push_back(node.get());
      result.push_back(reader);
    }
  }
  return result;
}

absl::StatusOr<Schedule> Online(const RuleContext& context, Schedule schedule,
                                BlockRv sum) {
  // Exponentials of a block of their own are computed twice, but neither
  // written nor read.
  TF_RETURN_IF_ERROR(InlineProducers(schedule, sum, UsesCostlyIntrinsic));
  const int64_t lanes = kVectors * context.target.vector_lanes(4);
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> parts,
                      schedule.OnlineSoftmax(sum, kRowsOfLanes * lanes, lanes));
  for (const BlockRv part : parts) {
    TF_RETURN_IF_ERROR(
        schedule.Annotate(part, kTilingStructure, ir::Attr("SRS")));
  }
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                      schedule.GetLoops(parts[0]));
  const size_t chunks = loops.size() - 3;
  TF_RETURN_IF_ERROR(schedule.ReverseComputeAt(parts[1], loops[chunks],
                                               /*preserve_unit_loops=*/true));
  if (chunks == 0) return schedule;
  // Moves the other blocks of a row to its partial results: the maximum, the
  // sum, and their readers.
  const LoopRv row = loops[chunks - 1];
  TF_ASSIGN_OR_RETURN(std::vector<BlockRv> found, Readers(schedule, parts));
  std::vector<BlockRv> all = parts;
  while (!found.empty()) {
    for (const BlockRv reader : found) {
      // If this is refused, the reader is not moved.
      schedule.ReverseComputeAt(reader, row, /*preserve_unit_loops=*/true)
          .IgnoreError();
    }
    all.insert(all.end(), found.begin(), found.end());
    TF_ASSIGN_OR_RETURN(found, Readers(schedule, all));
  }
  return schedule;
}

}  // namespace

// A second alternative for softmax and similar sums of exponentials if a pass
// reads from memory: one pass over the exponents. If the program stores the
// exponentials, they are computed a second time, which costs less than writing
// and reading them (Dukhan and Ablavatski, 2020).
//
//   for i:
//     for k_0:                      a chunk
//       for k_1, k_2: largest_part[i, k_0, k_2] = ...
//       for k_1, k_2: total_part[i, k_0, k_2] = ...
//     for k_0, k_2: largest[i] = ...
//     for k_0, k_2: total[i] = ...
//     for k: B[i, k] = exp(x[i, k] - largest[i]) / total[i]
Alternatives OnlineSoftmax(const RuleContext& context, RuleSite site) {
  if (!IsReduction(*site.node) ||
      !ComesFromMemory(*site.node, context.target)) {
    return DoesNotApply();
  }
  auto online = Online(context, std::move(site.schedule), site.block);
  if (!online.ok()) return DoesNotApply();
  return std::vector{std::move(site.unchanged), *std::move(online)};
}

}  // namespace tilefarm::space

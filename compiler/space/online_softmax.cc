#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// Partial results are this many vectors side by side, so that additions need
// not wait for each other; a chunk has this many of those, so that the joining,
// an exponential for each partial result, is a small part of the work.
constexpr int64_t kVectors = 4;
constexpr int64_t kRowsOfLanes = 16;
// Shorter rows stay in the first cache from one pass to the next.
constexpr int64_t kMinRowBytes = 16 << 10;

// Whether passes over the terms come from memory: rows beyond the first cache,
// of an array that with the result beside it is beyond the last one.
bool ComesFromMemory(const ir::BlockNode& sum, const target::Target& target) {
  const int64_t row = 4 * ProductOf(sum, ir::IterType::kReduce);
  const int64_t rows = ProductOf(sum, ir::IterType::kSpatial);
  return row >= kMinRowBytes && 2 * row * rows > target.caches.l3_bytes;
}

// The exponentials, where a block of their own makes them, are computed where
// they are read: twice, but neither written nor read.
absl::Status InlineTerms(Schedule& schedule, BlockRv sum) {
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> producers,
                      schedule.GetProducers(sum));
  for (const BlockRv producer : producers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(producer));
    if (!IsElementwise(*node) || !UsesCostlyIntrinsic(*node)) continue;
    Schedule attempt = schedule;
    if (attempt.ComputeInline(producer).ok()) schedule = std::move(attempt);
  }
  return absl::OkStatus();
}

// Blocks that read what `producers` make, `producers` left out, in the order
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
      if (std::find(known.begin(), known.end(), node.get()) != known.end()) {
        continue;
      }
      known.push_back(node.get());
      result.push_back(reader);
    }
  }
  return result;
}

absl::StatusOr<Schedule> Online(const RuleContext& context, Schedule schedule,
                                const std::string& name) {
  TF_ASSIGN_OR_RETURN(const BlockRv sum,
                      schedule.GetBlock(name, context.function));
  TF_RETURN_IF_ERROR(InlineTerms(schedule, sum));
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
  // The rest of a row where its parts are: the largest, the sum, and what
  // reads them.
  const LoopRv row = loops[chunks - 1];
  TF_ASSIGN_OR_RETURN(std::vector<BlockRv> found, Readers(schedule, parts));
  std::vector<BlockRv> all = parts;
  while (!found.empty()) {
    for (const BlockRv reader : found) {
      // Refused, it stays where it is.
      schedule.ReverseComputeAt(reader, row, /*preserve_unit_loops=*/true)
          .IgnoreError();
    }
    all.insert(all.end(), found.begin(), found.end());
    TF_ASSIGN_OR_RETURN(found, Readers(schedule, all));
  }
  return schedule;
}

}  // namespace

// Softmax, and sums of exponentials like it, in one pass over the exponents as
// a second way, where a pass comes from memory. The exponentials are computed
// a second time where the program keeps them, which costs less than to write
// them and to read them again (Dukhan and Ablavatski, 2020).
//
//   for i:
//     for k_0:                      a chunk
//       for k_1, k_2: largest_part[i, k_0, k_2] = ...
//       for k_1, k_2: total_part[i, k_0, k_2] = ...
//     for k_0, k_2: largest[i] = ...
//     for k_0, k_2: total[i] = ...
//     for k: B[i, k] = exp(x[i, k] - largest[i]) / total[i]
Alternatives OnlineSoftmax(const RuleContext& context, Schedule schedule,
                           const std::string& name) {
  TF_ASSIGN_OR_RETURN(BlockRv block, schedule.GetBlock(name, context.function));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  std::vector<Schedule> results{schedule};
  if (IsReduction(*node) && ComesFromMemory(*node, context.target)) {
    auto attempt = Online(context, std::move(schedule), name);
    if (attempt.ok()) results.push_back(*std::move(attempt));
  }
  return results;
}

}  // namespace tilefarm::space

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::Schedule;

// Vectors of fewer lanes than this are not worth axes of their own.
constexpr int64_t kMinGroup = 4;

// An axis of the result, and how many neighbours along it read the same of an
// operand.
struct GroupedAxis {
  size_t iter = 0;  // of the block
  size_t dim = 0;   // of the result
  int64_t size = 0;
};

// The constant by which the load divides the variable wherever it occurs; 0: it
// also occurs otherwise, or not at all.
int64_t Divisor(const ir::LoadNode& load, const ir::VarNode* var) {
  int uses = 0, quotients = 0;
  int64_t divisor = 0;
  for (const ir::Expr& index : load.indices) {
    ir::PostOrderExprs(index, [&](const ir::Expr& expr) {
      uses += expr.get() == var;
      const auto* quotient = ir::As<ir::BinaryNode>(expr);
      if (quotient == nullptr || quotient->op != ir::BinaryOp::kFloorDiv ||
          quotient->a.get() != var) {
        return;
      }
      const int64_t by = ir::AsInt(quotient->b).value_or(0);
      quotients += divisor == 0 || divisor == by;
      divisor = by;
    });
  }
  return uses == quotients ? divisor : 0;
}

// What the operands divide the variable by, if all that divide it agree and
// others read it as it is; 0: none does.
int64_t GroupSize(const ir::BlockNode& block, const ir::VarNode* var) {
  int64_t size = 0;
  bool agree = true;
  ir::PostOrderExprs(block.body, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    const int64_t by = load == nullptr ? 0 : Divisor(*load, var);
    if (by == 0) return;
    agree &= size == 0 || size == by;
    size = by;
  });
  return agree ? size : 0;
}

std::optional<GroupedAxis> FindGroupedAxis(const ir::BlockNode& block) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (store == nullptr || !IsReduction(block) || !HasDataReuse(block) ||
      !WritesAtVariables(block) || !HasTrivialBindings(block)) {
    return std::nullopt;
  }
  for (size_t dim = 0; dim < store->indices.size(); ++dim) {
    const std::optional<size_t> iter = VariableOf(block, store->indices[dim]);
    if (!iter) continue;
    const ir::IterVar& axis = block.iters[*iter];
    const int64_t size = GroupSize(block, axis.var.get());
    const int64_t extent = IterExtent(axis);
    if (size >= kMinGroup && size < extent && extent % size == 0 &&
        store->buffer->shape[dim] == extent) {
      return GroupedAxis{*iter, dim, size};
    }
  }
  return std::nullopt;
}

// "lambda i0, i1: (i0, i1 // 8, i1 % 8)" of `count` variables, `split` in two.
std::string SplitMap(size_t count, size_t split, int64_t size) {
  std::vector<std::string> from, to;
  for (size_t i = 0; i < count; ++i) {
    from.push_back(absl::StrCat("i", i));
    if (i != split) {
      to.push_back(from.back());
      continue;
    }
    to.push_back(absl::StrCat(from.back(), " // ", size));
    to.push_back(absl::StrCat(from.back(), " % ", size));
  }
  return absl::StrCat("lambda ", absl::StrJoin(from, ", "), ": (",
                      absl::StrJoin(to, ", "), ")");
}

// The variable of the consumer that reads this dimension of the block's result.
std::optional<size_t> ReaderOf(const ir::BlockNode& consumer,
                               const ir::Buffer& result, size_t dim) {
  std::optional<size_t> iter;
  bool plain = true;
  ir::PostOrderExprs(consumer.body, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load == nullptr || load->buffer != result) return;
    const auto reads = VariableOf(consumer, load->indices[dim]);
    plain &= reads && reads == iter.value_or(*reads);
    iter = reads;
  });
  return plain ? iter : std::nullopt;
}

}  // namespace

// Makes two axes of one whose places an operand tells apart by group only, as
// convolutions in groups are written. Along the second, a vector of the other
// operand meets one element of the first; along the whole, lanes of different
// groups would read elements far apart.
//
//   C[h, c] += A[h, c // 8 * 8 + k] * B[c, k]
//   ->  C[h, g, i] += A[h, g * 8 + k] * B[g * 8 + i, k]
//
// The result gets both axes, too, and the consumer (a copy if there is none)
// puts them together.
Alternatives SplitGroups(const RuleContext&, RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  const std::optional<GroupedAxis> axis = FindGroupedAxis(*node);
  if (!axis) return DoesNotApply();
  TF_ASSIGN_OR_RETURN(std::optional<BlockRv> consumer,
                      FusibleConsumer(schedule, block));
  if (!consumer) {
    TF_ASSIGN_OR_RETURN(consumer, schedule.CacheWrite(block, 0, "global"));
    TF_ASSIGN_OR_RETURN(node, schedule.Get(block));
  }
  const ir::Buffer result = ir::As<ir::StoreNode>(node->body)->buffer;
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr reader, schedule.Get(*consumer));
  const std::optional<size_t> read = ReaderOf(*reader, result, axis->dim);
  if (!read) return DoesNotApply();
  const auto apply = [&]() -> absl::Status {
    TF_RETURN_IF_ERROR(schedule.TransformBlockLayout(
        block, SplitMap(node->iters.size(), axis->iter, axis->size)));
    TF_RETURN_IF_ERROR(schedule.TransformLayout(
        block, /*read=*/false, 0,
        SplitMap(result->shape.size(), axis->dim, axis->size)));
    return schedule.TransformBlockLayout(
        *consumer, SplitMap(reader->iters.size(), *read, axis->size));
  };
  if (!apply().ok()) return DoesNotApply();
  return std::vector{std::move(schedule)};
}

}  // namespace tilefarm::space

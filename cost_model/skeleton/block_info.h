// Reads off blocks what decisions do not change.
#ifndef TILEFARM_COST_MODEL_SKELETON_BLOCK_INFO_H_
#define TILEFARM_COST_MODEL_SKELETON_BLOCK_INFO_H_

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "cost_model/skeleton/skeleton.h"

namespace tilefarm::skeleton {

// Variable -> its number.
using VarNumbers = std::unordered_map<const ir::VarNode*, int>;

// `expr` as a sum of (variable, factor) and a constant; not linear where it is
// anything else.
IndexExpr ReadIndex(const ir::Expr& expr, const VarNumbers& vars);

// Numbers buffers in order of first use; parameters come first.
class BufferNumbers {
 public:
  explicit BufferNumbers(const ir::PrimFunc& function);
  int Of(const ir::Buffer& buffer);
  std::vector<cost_model::NestBuffer> Take() { return std::move(buffers_); }

 private:
  int Add(const ir::Buffer& buffer, bool intermediate);
  std::vector<cost_model::NestBuffer> buffers_;
  std::unordered_map<const ir::BufferNode*, int> numbers_;
};

// Unimplemented for a block whose body is not one store or that carries an
// annotation of the rules whose meaning is not known here.
absl::StatusOr<BlockInfo> ReadBlock(const ir::BlockPtr& block,
                                    BufferNumbers& buffers);

}  // namespace tilefarm::skeleton

#endif  // TILEFARM_COST_MODEL_SKELETON_BLOCK_INFO_H_

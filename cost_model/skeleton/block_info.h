// What decisions do not change of a block: its accesses, operations and
// annotations, read off its IR once for each sketch.
#ifndef TILEFARM_COST_MODEL_SKELETON_BLOCK_INFO_H_
#define TILEFARM_COST_MODEL_SKELETON_BLOCK_INFO_H_

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/tensor_intrin.h"
#include "cost_model/loop_nest.h"

namespace tilefarm::skeleton {

// coefficient * ((loop % upper) // lower), a digit of a fused loop; upper 0: no
// remainder is taken. A fused loop that was split stands for the sum of its
// parts. In sums of variables one of these is in the place of the loop.
struct LoopPart {
  int loop = 0;
  int64_t coefficient = 1;
  int64_t lower = 1;
  int64_t upper = 0;

  bool is_digit() const { return lower != 1 || upper != 0; }
};

// One index of an access, over the block's variables.
struct IndexExpr {
  ir::Expr expr;
  bool linear = false;  // sum of `terms` (variable, factor) and the constant
  std::vector<std::pair<int, double>> terms;
  double constant = 0;
  // In regions, where not linear: above 1, the sum divided by it, or the rest.
  int64_t divisor = 1, modulus = 1;
};

struct BlockAccess {
  int buffer = 0;
  bool writes = false;
  std::vector<IndexExpr> indices;
  // Loads that differ from it by constants alone, if any: it stands for all of
  // them wherever the buffer lies as the program says. The constant of each
  // index is lower by at most `below`, higher by `above`.
  std::vector<BlockAccess> alike;
  std::vector<double> below, above;
};

// A store of a block: the written buffer first, then what it loads.
struct BlockStore {
  cost_model::OpCounts ops;
  std::vector<BlockAccess> accesses;
};

struct BlockIter {
  ir::IterType type = ir::IterType::kSpatial;
  int64_t extent = 1;
  const ir::VarNode* var = nullptr;
};

// What a block declares that it reads or writes of one buffer.
struct BlockRegion {
  int buffer = 0;
  std::vector<IndexExpr> mins;
  std::vector<int64_t> extents;
};

struct BlockInfo {
  ir::BlockPtr block;  // owns the expressions
  std::vector<BlockIter> iters;
  BlockStore body;
  std::optional<BlockStore> init;
  std::vector<BlockRegion> reads, writes;
  bool is_reduction = false;
  bool is_tiled = false;  // in levels: its innermost loops are a register tile
  bool is_transposed = false;  // tiles whose elements stay apart
  bool is_packed = false;
  bool is_prepacked = false;  // copies ahead of time: no part of the nest
  // Of a block whose innermost loops become an instruction.
  std::optional<schedule::ProductShape> dot;

  // The iteration variable that is the whole last index of the store; -1
  // where there is none.
  int last_index_iter = -1;
};

// Variable -> its number.
using VarNumbers = std::unordered_map<const ir::VarNode*, int>;

// factor * `expr` as a sum of parts and a constant; false where it is anything
// else.
bool ReadParts(const ir::Expr& expr, int64_t factor, const VarNumbers& vars,
               std::vector<LoopPart>& parts, int64_t& constant);

// `expr` as a sum of (variable, factor) and a constant; not linear where it is
// anything else.
IndexExpr ReadIndex(const ir::Expr& expr, const VarNumbers& vars);

// Numbers buffers in order of first use; parameters come first.
class BufferNumbers {
 public:
  explicit BufferNumbers(const ir::PrimFunc& function);
  int Of(const ir::Buffer& buffer);
  const std::vector<cost_model::NestBuffer>& buffers() const {
    return buffers_;
  }

 private:
  int Add(const ir::Buffer& buffer, bool intermediate);
  std::vector<cost_model::NestBuffer> buffers_;
  std::unordered_map<const ir::BufferNode*, int> numbers_;
};

struct BlockRegions {
  std::vector<BlockRegion> reads, writes;
};
// Unimplemented for regions of varying width.
absl::StatusOr<BlockRegions> ReadBlockRegions(const ir::BlockNode& block,
                                              BufferNumbers& buffers);

// Unimplemented for a block whose body is not one store or that carries an
// annotation of the rules whose meaning is not known here.
absl::StatusOr<BlockInfo> ReadBlock(const ir::BlockPtr& block,
                                    BufferNumbers& buffers);

}  // namespace tilefarm::skeleton

#endif  // TILEFARM_COST_MODEL_SKELETON_BLOCK_INFO_H_

// A skeleton with the numbers of one candidate, and what the postprocs of the
// design space make of it.
//
// The postprocs look at numbers (extents, widths), so they run for every
// candidate. What they do is stated here once more, on loops and bindings
// instead of IR; `compiler/space/postprocs.h` is what it must agree with, and
// the evaluator holds the two against each other (evaluator.h).
#ifndef TILEFARM_COST_MODEL_SKELETON_FINISH_H_
#define TILEFARM_COST_MODEL_SKELETON_FINISH_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/space/postprocs.h"
#include "compiler/target/target.h"
#include "cost_model/affine.h"
#include "cost_model/loop_nest.h"
#include "cost_model/skeleton/skeleton.h"

namespace tilefarm::skeleton {

// The innermost loops of a block that a dot product takes the place of.
inline constexpr size_t kDotLoops = 2;

struct NestedLoop {
  int64_t extent = 1;
  ir::ForKind kind = ir::ForKind::kSerial;
  int64_t unroll_steps = -1;  // -1: no annotation
};

// coefficient * ((loop % upper) // lower); upper 0: no remainder is taken.
struct LoopPart {
  int loop = 0;
  int64_t coefficient = 1;
  int64_t lower = 1;
  int64_t upper = 0;
};

struct NestedBlock {
  const BlockInfo* info = nullptr;
  bool is_init = false;     // the initialisation of a decomposed reduction
  bool decomposed = false;  // a reduction without its initialisation
  bool guarded = false;     // by the tail of a spatial loop
  bool cut = false;         // by that of a loop cut for its vectors
  bool reduce_guarded = false;
  // Of an instruction, whose loop over a group is gone: the variable that is
  // summed over; else -1.
  int group_iter = -1;
  std::vector<int> loops;  // outermost first
  std::vector<std::vector<LoopPart>> bindings;
  std::vector<int64_t> constants;
};

// A dimension of a packed buffer as it lies in memory: of the program's
// dimension i
struct PanelDim {
  enum Part {
    kWhole,     // i
    kPanel,     // i // width
    kWithin,    // i % width
    kRegister,  // i % width // lanes
    kLane,      // i % lanes
    kGroup,     // i // group
    kOfGroup,   // i % group
  };
  int dim = 0;
  Part part = kWhole;
};

// Of a packed buffer: its dimensions as they lie in memory, one of them in
// panels (space/postprocs.h); none where it lies as the program says.
struct Panels {
  std::vector<PanelDim> dims;
  int64_t width = 0;
  int64_t lanes = 0, group = 0;  // as a dot product reads it
  bool is_cut = false;           // more than one panel

  // Of a dimension, where the program's has `extent`.
  int64_t ExtentOf(PanelDim::Part part, int64_t extent) const;
};

// Its vectors keep their memory from candidate to candidate. Not thread-safe.
class Nest {
 public:
  // The skeleton's loops with these numbers.
  void Start(const Skeleton& skeleton, const std::vector<int64_t>& numbers);
  // Applies the postprocs. Null, or why only the real ones can tell what
  // happens.
  const char* Finish(const Skeleton& skeleton,
                     const std::vector<int64_t>& numbers,
                     const target::Target& target);
  // What the cost model sees of it; `out` must be of the same skeleton or
  // empty.
  void Write(const Skeleton& skeleton, cost_model::LoopNest& out);

  // What the postprocs did, block by block; the numbers apart.
  std::span<const uint32_t> events() const { return events_; }

 private:
  // --- The postprocs, one a function ---
  // tensorize.cc
  void LayOutDotProducts();
  void PackForDot(const NestedBlock& dot);
  void OrderDotCopy(NestedBlock& copy, const Panels& panels, int lane_dim,
                    int group_dim);
  void UnrollDotTile(NestedBlock& dot);
  void Tensorize(NestedBlock& block);
  // finish.cc
  void PackBuffers(const Skeleton& skeleton);
  void PackBuffer(NestedBlock& copy);
  void PrepackBuffer(const NestedBlock& copy);
  // The first block that reads the buffer.
  const NestedBlock* ReaderOf(int buffer) const;
  void Vectorize(NestedBlock& block, int64_t lanes);
  void Parallelize(NestedBlock& block, int64_t jobs);
  void UnrollRegisterTile(NestedBlock& block, int64_t lanes);
  void AnnotateUnroll(NestedBlock& block, int64_t steps);
  void Decompose(int number);
  size_t FirstReduceLoop(const NestedBlock& block) const;

  // --- What they ask and do (loops.cc) ---
  static bool Uses(const NestedBlock& block, size_t iter, int loop);
  // The first variable that moves with the loop; -1: none does.
  static int IterOf(const NestedBlock& block, int loop);
  // Some variable that is not data parallel (a reduction) moves with it.
  static bool Reduces(const NestedBlock& block, int loop, bool reduce_only);
  // Each of loops[first..last] of the block is the only statement of the one
  // before.
  bool IsChain(const NestedBlock& block, size_t first, size_t last) const;
  int BlocksBelow(int loop) const;
  bool MayRunInParallel(const NestedBlock& block, size_t first, size_t count);
  void SplitLoop(int loop, int64_t inner_extent, int* outer, int* inner);
  void MergeDigits(std::vector<LoopPart>& parts, int loop);
  bool HasNoGaps(const std::vector<LoopPart>& parts, bool rightmost);
  int FuseLoops(const NestedBlock& block, size_t count);
  NestedBlock& NewBlock();
  NestedBlock& At(size_t i) { return pool_[static_cast<size_t>(order_[i])]; }
  const NestedBlock& At(size_t i) const {
    return pool_[static_cast<size_t>(order_[i])];
  }
  enum Step : uint32_t {
    kPanel = 1,
    kSplitPanel,
    kVectorLoop,
    kSplitVector,
    kMovedVector,
    kSharedVector,
    kGuarded,
    kTail,
    kParallelLoops,
    kUnrolled,
    kAnnotated,
    kDecomposed,
    kPrepacked,
    kDotPanel,
    kDotTile,
    kTensorized,
  };
  void Note(Step step, uint32_t detail = 0) {
    events_.push_back(current_ * 65536 + step * 1024 + detail);
  }

  // --- Writing (write.cc) ---
  // `is_start`: the initialisation that still stands in the block.
  void WriteBlock(const NestedBlock& block, bool is_start,
                  cost_model::NestStore& out);
  void ReadBindings(const NestedBlock& block);
  void ReadForms(const NestedBlock& block);
  void WriteAccess(const NestedBlock& block, const BlockAccess& access,
                   cost_model::NestStore& out, size_t* used);

  std::vector<NestedLoop> loops_;
  std::vector<NestedBlock> pool_;
  size_t blocks_ = 0;       // of pool_ in use
  std::vector<int> order_;  // program order, as indices into pool_
  std::vector<Panels> panels_;
  const std::vector<cost_model::NestBuffer>* buffers_ = nullptr;
  std::vector<uint32_t> events_;
  uint32_t current_ = 0;  // the block that events are about
  const char* unsure_ = nullptr;

  // Of the block that is written: an index by the loops around it, as
  // cost_model::LoopTerm says what the numbers mean.
  struct LoopMove {
    double stride = 0, span = 0, step = 0;
  };
  struct Form {
    std::vector<LoopMove> moves;  // by listed loop
    std::vector<size_t> places;   // of a variable: where it has parts
    double constant = 0;
    bool irregular = false;
  };
  void Resize(Form& form) const;
  void AddPart(Form& to, size_t place, double stride, double span,
               double step) const;
  Form& FormOfIndex(const NestedBlock& block, const IndexExpr& index,
                    Form& form);
  // Of a dimension of a packed buffer.
  void FormOfPart(const NestedBlock& block, const BlockAccess& access,
                  const Panels& panels, PanelDim dim, Form& form);
  // tensorize.cc: the same in a block that is an instruction.
  void FormOfDotPart(const Panels& panels, PanelDim::Part part,
                     Form& form) const;
  void ScaleForm(Form& form, double factor) const;
  // How far the group's numbers, all of which an instruction reads, are apart
  // in dimension `d` of what it reads.
  double GroupSpan(const NestedBlock& block, const BlockAccess& access,
                   const Panels& panels, size_t d) const;
  void WriteDot(const NestedBlock& block, cost_model::NestStore& out) const;
  void DivideForm(Form& form, double width) const;
  void RemainderForm(Form& form, double width) const;
  std::vector<int> place_;   // of each loop around the block; -1: not listed
  std::vector<int> listed_;  // loops around it of more than one iteration
  size_t depth_ = 0;
  std::vector<Form> variables_;
  cost_model::FormMap forms_;  // the same, once an index asks for them
  std::vector<Form> dims_;
  std::vector<Form> laid_out_;
  std::vector<std::vector<double>> lowest_, highest_;  // offsets, by access
  std::vector<int> snapshot_;
  std::vector<LoopPart> merged_;
  std::vector<bool> taken_;
};

}  // namespace tilefarm::skeleton

#endif  // TILEFARM_COST_MODEL_SKELETON_FINISH_H_

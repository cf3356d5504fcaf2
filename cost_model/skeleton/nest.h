// A schedule on numbers: the loops around each block and how its variables
// move with them, with the extents of one candidate. A sketch's steps
// (sketch_plan.h) and the postprocs of the design space run on it, without IR.
//
//   for i_0, i_1: Y (vi = i_0 * 8 + i_1)     loops  i_0: 4, i_1: 8
//                                            Y      loops {i_0, i_1}
//     split(i_1, [2, 4])  ->                        vi = {i_0 * 8, i_1 * 1}
//   for i_0, i_1_0, i_1_1: Y                 Y      loops {i_0, i_1_0, i_1_1}
//                                                   vi = {8, 4, 1}
//
// What the primitives do to it follows from `compiler/schedule`, what the
// postprocs do from `compiler/space/postprocs.h`. Where numbers alone do not
// tell what the program would do, the nest says why and the candidate is
// replayed (evaluator.h).
#ifndef TILEFARM_COST_MODEL_SKELETON_NEST_H_
#define TILEFARM_COST_MODEL_SKELETON_NEST_H_

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "compiler/space/panels.h"
#include "compiler/target/target.h"
#include "cost_model/affine.h"
#include "cost_model/loop_nest.h"
#include "cost_model/skeleton/block_info.h"
#include "cost_model/skeleton/sketch_plan.h"

namespace tilefarm::skeleton {

// The decisions of a candidate as plain integers, site by site.
class DecisionValues {
 public:
  // False where a decision is neither an integer nor a list of integers.
  bool Assign(std::span<const ir::Attr> decisions);
  int sites() const { return static_cast<int>(begins_.size()) - 1; }
  std::span<const int64_t> operator[](int site) const {
    return std::span<const int64_t>(values_).subspan(
        begins_[site], begins_[site + 1] - begins_[site]);
  }

 private:
  std::vector<int64_t> values_;
  std::vector<size_t> begins_{0};
};

// Its vectors keep their memory from candidate to candidate. Not thread-safe.
class Nest {
 public:
  // The loops of the plan's sketch with these decisions. Null, or why only a
  // replay can tell what they make.
  const char* Run(const SketchPlan& plan, const DecisionValues& decisions);
  // Applies the postprocs; the same.
  const char* Finish(const SketchPlan& plan, const target::Target& target);
  // What the cost model sees of it; `out` must be of the same plan or empty.
  void Write(cost_model::LoopNest& out);

  // What steps and postprocs did, block by block; the numbers apart.
  std::span<const uint32_t> events() const { return events_; }

  // --- The parts of Run, for who makes plans ---
  void Start(int values);
  // Buffers that are numbered since the last call.
  void AddBuffers(const std::vector<cost_model::NestBuffer>& buffers);
  const char* Do(const Step& step, const DecisionValues& decisions);
  const std::vector<NestedLoop>& loops() const { return loops_; }
  const std::vector<int>& order() const { return order_; }
  const NestedBlock& block(int number) const {
    return pool_[static_cast<size_t>(number)];
  }

 private:
  // --- The steps of sketches ---
  // The integers of a decision, of which there should be `count`; empty, with
  // `unsure_` set, if there are not. The caller clears it where they are legal.
  std::span<const int64_t> DecisionOf(int site, size_t count);
  void Apply(const SampleTile& step);
  void Apply(const SampleChoice& step);
  void Apply(const SplitLoop& step);
  void Apply(const FuseLoops& step);
  void Apply(const ReorderLoops& step);
  void Apply(const MarkLoop& step);
  void Apply(const RemoveBlock& step);
  void Apply(const PlaceBlocks& step);
  void Apply(const MoveBlock& step);
  void Apply(const FactorReduction& step);
  // --- Regions (move.cc) ---
  // The values of an index while loops of one iteration of `loop` run: from
  // `constant` and the terms of outer loops on, `width` of them.
  struct Interval {
    std::vector<LoopPart> outer;
    int64_t constant = 0, width = 0;
  };
  // Of dimension `d` of what the block accesses.
  void IntervalOf(const NestedBlock& block, const BlockRegion& region, size_t d,
                  int loop, bool must_be_dense, Interval& interval);
  void Join(Interval& into, const Interval& other);
  // What a moved block computes there, by variable. A quotient and a remainder
  // by the same number add up to the variable.
  struct Domain {
    Interval interval;
    bool whole = false;
    int64_t divisor = 0, modulus = 0;
    int64_t limit = 0;
  };
  bool RunsOnce(const NestedBlock& block) const;

  // --- The postprocs, one a function ---
  // tensorize.cc
  void LayOutDotProducts();
  void PackForDot(const NestedBlock& dot);
  void OrderDotCopy(NestedBlock& copy, const space::Panels& panels,
                    int lane_dim, int group_dim);
  void UnrollDotTile(NestedBlock& dot);
  void Tensorize(NestedBlock& block);
  // postprocs.cc
  void PackBuffers();
  void PackBuffer(NestedBlock& copy);
  void PrepackBuffer(const NestedBlock& copy);
  // The first block that reads the buffer.
  const NestedBlock* ReaderOf(int buffer) const;
  void Vectorize(NestedBlock& block, int64_t lanes);
  void Parallelize(NestedBlock& block, int64_t jobs);
  void UnrollRegisterTile(NestedBlock& block, int64_t lanes);
  void AnnotateUnroll(NestedBlock& block, int64_t steps);
  void Decompose(int number);
  // The loops around the block, for compiler/space/loop_rules.h; they live
  // until the next call.
  std::span<const space::LoopView> ViewLoops(const NestedBlock& block);

  // --- What they ask and do (loops.cc) ---
  int64_t ValueOf(const Operand& operand) const {
    return operand.value < 0 ? operand.constant
                             : values_[static_cast<size_t>(operand.value)];
  }
  static bool IsBelow(const NestedBlock& block, int loop);
  // Whether `loop` is `whole` or a part of it.
  bool IsPartOf(int loop, int whole) const;
  bool Moves(const LoopPart& part, int loop) const {
    return part.is_digit() ? IsPartOf(loop, part.loop) : part.loop == loop;
  }
  // How far one iteration of a part moves the whole.
  int64_t StepOf(int loop, int whole) const;
  bool Uses(const NestedBlock& block, size_t iter, int loop) const;
  // The first variable that moves with the loop; -1: none does.
  int IterOf(const NestedBlock& block, int loop) const;
  static bool Reads(const NestedBlock& block, int buffer);
  // The dimension of what `copy` writes that the block indexes with just the
  // variable; -1: there is none.
  static int DimIndexedBy(const NestedBlock& block, const NestedBlock& copy,
                          int iter);
  // Some variable that is not data parallel (a reduction) moves with it.
  bool Reduces(const NestedBlock& block, int loop, bool reduce_only) const;
  // Each of loops[first..last] of the block is the only statement of the one
  // before.
  bool IsChain(const NestedBlock& block, size_t first, size_t last) const;
  int BlocksBelow(int loop) const;
  bool MayRunInParallel(const NestedBlock& block, size_t first, size_t count);
  // Puts new loops with these extents, outermost first, in place of the loop;
  // returns the first one's number, the others follow.
  int Split(int loop, std::span<const int64_t> extents);
  int NewLoop(int64_t extent);
  void MergeDigits(std::vector<LoopPart>& parts, int loop);
  bool HasNoGaps(const std::vector<LoopPart>& parts, bool rightmost);
  // `count` loops of the block, from number `first` on, become one.
  int Fuse(const NestedBlock& block, size_t first, size_t count);
  NestedBlock& NewBlock();
  NestedBlock& At(size_t i) { return pool_[static_cast<size_t>(order_[i])]; }
  const NestedBlock& At(size_t i) const {
    return pool_[static_cast<size_t>(order_[i])];
  }
  enum Event : uint32_t {
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
    kFused,
  };
  void Note(Event event, uint32_t detail = 0) {
    events_.push_back(current_ * 65536 + event * 1024 + detail);
  }

  // --- Writing (write.cc) ---
  // `is_start`: the initialisation that still stands in the block.
  void WriteBlock(const NestedBlock& block, bool is_start,
                  cost_model::NestStore& out);
  void ReadBindings(const NestedBlock& block);
  void WriteAccess(const NestedBlock& block, const BlockAccess& access,
                   cost_model::NestStore& out, size_t* used);

  std::vector<NestedLoop> loops_;
  std::deque<NestedBlock> pool_;  // its blocks stay where they are
  size_t blocks_ = 0;             // of pool_ in use
  std::vector<int> order_;        // program order, as indices into pool_
  std::vector<space::Panels> panels_;
  const std::vector<cost_model::NestBuffer>* buffers_ = nullptr;
  std::vector<std::vector<int64_t>> shapes_;  // by buffer, before packing
  const DecisionValues* decisions_ = nullptr;
  std::vector<int64_t> values_;  // of the sketch's samples
  std::vector<uint32_t> events_;
  uint32_t current_ = 0;  // the block that events are about
  const char* unsure_ = nullptr;

  // Of the block that is written: an index by the loops around it, of which
  // those of one iteration are left out.
  void FormOfIndex(const NestedBlock& block, const IndexExpr& index,
                   cost_model::IndexForm& form);
  void AddVariable(const NestedBlock& block, size_t variable, double factor,
                   cost_model::IndexForm& form) const;
  // Of a dimension of a packed buffer.
  void FormOfPart(const NestedBlock& block, const BlockAccess& access,
                  const space::Panels& panels, space::PanelDim dim,
                  cost_model::IndexForm& form);
  // tensorize.cc: the same in a block that is an instruction.
  void FormOfDotPart(const space::Panels& panels, space::PanelDim::Part part,
                     cost_model::IndexForm& form) const;
  // How far the group's numbers, all of which an instruction reads, are apart
  // in dimension `d` of what it reads.
  double GroupSpan(const NestedBlock& block, const BlockAccess& access,
                   const space::Panels& panels, size_t d) const;
  std::vector<int> place_;   // of each loop around the block; -1: not listed
  std::vector<int> listed_;  // loops around it of more than one iteration
  size_t depth_ = 0;
  std::vector<cost_model::IndexForm> variables_;
  cost_model::FormMap forms_;  // the same, once an index asks for them
  std::vector<cost_model::IndexForm> dims_;
  std::vector<std::vector<double>> lowest_, highest_;  // offsets, by access
  std::vector<space::LoopView> views_;
  std::vector<int> snapshot_;
  std::vector<LoopPart> merged_;
  std::vector<bool> taken_;
  std::vector<int64_t> extents_;
  std::vector<std::pair<int64_t, int64_t>> steps_;  // and extents
  std::vector<Domain> domains_;
  Interval need_, other_need_;
};

}  // namespace tilefarm::skeleton

#endif  // TILEFARM_COST_MODEL_SKELETON_NEST_H_

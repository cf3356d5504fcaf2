// Runs a sketch over loops and blocks whose numbers are expressions; private
// to the sources that build skeletons.
//
//   build.cc          the steps, and what the program itself tells
//   instructions.cc   samples, split, reorder, annotate, copies
//   move.cc           compute_at and reverse_compute_at
#ifndef TILEFARM_COST_MODEL_SKELETON_BUILDER_H_
#define TILEFARM_COST_MODEL_SKELETON_BUILDER_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"
#include "cost_model/skeleton/block_info.h"
#include "cost_model/skeleton/skeleton.h"

namespace tilefarm::skeleton {

// Arguments of an instruction; null or `otherwise` where there is no such one.
const schedule::Rv* RvArg(const schedule::Instruction& instruction,
                          std::string_view name);
const ir::Attr* ConstArg(const schedule::Instruction& instruction,
                         std::string_view name);
int64_t IntArg(const schedule::Instruction& instruction, std::string_view name,
               int64_t otherwise);

// What a location variable stands for besides loops.
inline constexpr int kNoLoop = -1;     // the root
inline constexpr int kInlined = -2;    // the block is inlined
inline constexpr int kForgotten = -3;  // a loop that is no more

class Builder {
 public:
  Builder(const ir::PrimFuncPtr& program, const schedule::Trace& sketch,
          std::span<const ir::Attr> decisions)
      : program_(program),
        sketch_(sketch),
        decisions_(decisions.begin(), decisions.end()) {
    module_.functions.push_back(program);
  }
  absl::StatusOr<Skeleton> Run();

 private:
  // --- 1: the sketch on the program ---
  absl::Status ReplayWhole();
  // The name of the block that a variable stands for after the whole sketch;
  // empty where it is gone.
  std::string NameOf(const schedule::Schedule& schedule, size_t instruction,
                     size_t output) const;
  // --- 2: up to the first sample ---
  absl::Status ReplayPrefix();
  absl::Status Import(const ir::Stmt& stmt);
  // --- 3: the instructions ---
  absl::Status Apply(const schedule::Instruction& in);
  absl::Status Sample(const schedule::Instruction& in);
  absl::Status NameBlocks(const schedule::Instruction& in);
  absl::Status GetLoops(const schedule::Instruction& in);
  absl::Status Split(const schedule::Instruction& in);
  // Whether a reduce variable of the block moves with the loop.
  bool Reduces(const SketchBlock& block, int loop) const;
  void SplitTerms(std::vector<Term>& terms, int loop,
                  const std::vector<int>& parts);
  absl::Status Reorder(const schedule::Instruction& in);
  // unroll, vectorize.
  absl::Status Mark(const schedule::Instruction& in, ir::ForKind kind);
  // Annotations of blocks are read off the replayed program.
  absl::Status Annotate(const schedule::Instruction& in);
  // A copy of a whole buffer: of a parameter before everything, of an output
  // after everything.
  absl::Status Cache(const schedule::Instruction& in);
  absl::Status Move(const schedule::Instruction& in, bool reverse);
  // The blocks that read what the block writes, or write what it reads.
  std::vector<int> Neighbours(const BlockInfo& info, bool producers) const;
  std::vector<int> CommonLoops(int block) const;
  // compute_at and reverse_compute_at: the block gets a loop for each of its
  // variables, over what one iteration of `loop` needs (gives).
  absl::Status MoveTo(int number, int loop, bool reverse);
  // The position among the blocks before which the moved block goes; `prefix`
  // becomes the loops down to `loop`.
  std::optional<int> Place(int number, int loop, const BlockInfo& info,
                           std::vector<int>& prefix) const;
  // Variables of `info` that index `access`, from the region `need` of block
  // `other` while its loops below `loop` run.
  absl::Status Constrain(const SketchBlock& other, const BlockRegion& need,
                         const BlockInfo& info, const BlockRegion& access,
                         int loop, bool reverse, SketchBlock& moved,
                         std::vector<std::optional<Value>>& widths);
  // --- 4: the outcome ---
  absl::Status Finish();
  // The extents of the loops around a block of the replayed program.
  absl::Status LoopExtents(const ir::BlockPtr& block,
                           std::vector<int64_t>& extents);
  // --- Small things ---
  absl::Status Unknown(std::string_view what) const {
    return absl::UnimplementedError(
        absl::StrCat("no skeleton: ", std::string(what)));
  }
  void Require(Value a, Value b, bool equal = false);
  int NewLoop(Value extent) {
    out_.extents.push_back(extent);
    out_.kinds.push_back(ir::ForKind::kSerial);
    return static_cast<int>(out_.extents.size()) - 1;
  }
  int InfoOf(int block) const;
  absl::StatusOr<int> Loop(const schedule::Instruction& in,
                           std::string_view arg) const;
  absl::StatusOr<int> Block(const schedule::Instruction& in) const;
  const ir::PrimFuncPtr& program_;
  const schedule::Trace& sketch_;
  const std::vector<ir::Attr> decisions_;
  ir::IRModule module_;
  std::optional<schedule::Schedule> whole_;
  std::unordered_map<std::string, int> info_of_;  // by block name
  Skeleton out_;
  std::vector<std::string> names_;  // of out_.blocks
  VarNumbers loop_of_;
  std::vector<int> path_;
  size_t next_ = 0;
  int next_site_ = 0;
  std::unordered_map<int, std::string> block_rvs_;
  std::unordered_map<int, int> loop_rvs_;
  std::unordered_map<int, Value> expr_rvs_;
};

}  // namespace tilefarm::skeleton

#endif  // TILEFARM_COST_MODEL_SKELETON_BUILDER_H_

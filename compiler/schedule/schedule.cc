#include "compiler/schedule/schedule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/verifier.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/loop_primitives.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {
namespace {

// Restores the state unless committed. Commit records the instruction.
class Transaction {
 public:
  Transaction(ScheduleState& state, std::string_view primitive)
      : state_(state), before_(state.Save()) {
    state_.Begin(primitive);
  }
  ~Transaction() {
    if (!committed_) state_.Restore(std::move(before_));
    state_.Begin("get");
  }
  // Checks the invariants that every primitive must keep.
  absl::Status CheckResult() const {
    const bool changed = state_.module().functions != before_.module.functions;
    if (!changed) return absl::OkStatus();
    TF_RETURN_IF_ERROR(CheckSizes());
    if (ir::VerifiesEveryStep()) {
      const absl::Status verified = ir::Verify(state_.module());
      if (!verified.ok()) {
        return absl::InternalError(
            absl::StrCat(std::string(state_.primitive()),
                         " made an illegal program: ", verified.message()));
      }
    }
    if (!state_.defers_concurrency() &&
        !FindPrimitive(state_.primitive())->keeps_concurrency) {
      TF_RETURN_IF_ERROR(CheckConcurrentLoops(state_));
    }
    return CheckLibraryBlocks(state_);
  }
  void Commit(Instruction instruction) {
    state_.trace().instructions.push_back(std::move(instruction));
    committed_ = true;
  }

 private:
  // Copies, padding and partial results may exceed the size limits of programs.
  absl::Status CheckSizes() const {
    for (const ir::PrimFuncPtr& function : state_.module().functions) {
      for (const ir::BlockPtr& block : state_.BlocksOf(function.get())) {
        for (const ir::Buffer& buffer : block->allocs) {
          const absl::Status size = ir::CheckBufferSize(*buffer);
          if (!size.ok()) return state_.Illegal(block.get(), size);
        }
      }
    }
    return absl::OkStatus();
  }

  ScheduleState& state_;
  ScheduleState::Snapshot before_;
  bool committed_ = false;
};

// --- Values as arguments and results of instructions ---

Rv ToRv(BlockRv v) { return {RvKind::kBlock, v.id}; }
Rv ToRv(LoopRv v) { return {RvKind::kLoop, v.id}; }
Rv ToRv(ExprRv v) { return {RvKind::kExpr, v.id}; }

// A buffer among the reads or writes of a block: ("read", 0).
struct BufferOf {
  bool read;
  int index;
};

Arg ToArg(BlockRv v) { return {ToRv(v)}; }
Arg ToArg(LoopRv v) { return {ToRv(v)}; }
Arg ToArg(const BlockOrLoop& v) {
  return std::visit([](auto rv) { return ToArg(rv); }, v);
}
Arg ToArg(int v) { return {ir::Attr(v)}; }
Arg ToArg(int64_t v) { return {ir::Attr(v)}; }
Arg ToArg(bool v) { return {ir::Attr(v)}; }
Arg ToArg(const std::string& v) { return {ir::Attr(v)}; }
Arg ToArg(std::string_view v) { return {ir::Attr(std::string(v))}; }
Arg ToArg(const std::vector<int64_t>& values) {
  return {ir::Attr(ir::AttrList(values.begin(), values.end()))};
}
Arg ToArg(const std::vector<double>& values) {
  return {ir::Attr(ir::AttrList(values.begin(), values.end()))};
}
Arg ToArg(const AnnValue& v) {
  if (const auto* constant = std::get_if<ir::Attr>(&v)) return {*constant};
  return {ToRv(std::get<ExprRv>(v))};
}
// Makes lists as Parse does: one attribute if all items are constants.
Arg ToArg(const Number& v) {
  const auto* rv = std::get_if<ExprRv>(&v);
  return rv == nullptr ? ToArg(std::get<int64_t>(v)) : Arg{ToRv(*rv)};
}
Arg ToArg(const std::vector<Factor>& factors) {
  ArgList list;
  ir::AttrList constants;
  for (const Factor& factor : factors) {
    if (!factor.has_value()) {
      list.push_back(Arg{ir::Attr()});
      constants.push_back(ir::Attr());
    } else if (const auto* number = std::get_if<int64_t>(&*factor)) {
      list.push_back(ToArg(*number));
      constants.push_back(ir::Attr(*number));
    } else {
      list.push_back(Arg{ToRv(std::get<ExprRv>(*factor))});
    }
  }
  if (constants.size() == factors.size()) return {ir::Attr(constants)};
  return {std::move(list)};
}
Arg ToArg(const std::vector<LoopRv>& loops) {
  ArgList list;
  for (const LoopRv loop : loops) list.push_back(ToArg(loop));
  return {std::move(list)};
}
Arg ToArg(const std::vector<BlockRv>& blocks) {
  if (blocks.empty()) return {ir::Attr(ir::AttrList())};
  ArgList list;
  for (const BlockRv block : blocks) list.push_back(ToArg(block));
  return {std::move(list)};
}
Arg ToArg(BufferOf v) {
  return {ir::Attr(
      ir::AttrList{ir::Attr(v.read ? "read" : "write"), ir::Attr(v.index)})};
}

template <typename T>
std::vector<Rv> ToOutputs(const T& out) {
  return {ToRv(out)};
}
template <typename T>
std::vector<Rv> ToOutputs(const std::vector<T>& out) {
  std::vector<Rv> rvs;
  rvs.reserve(out.size());
  for (const T& rv : out) rvs.push_back(ToRv(rv));
  return rvs;
}

ir::Attr ToDecision(const std::optional<int64_t>& decision) {
  return decision ? ir::Attr(*decision) : ir::Attr();
}
ir::Attr ToDecision(const std::optional<std::vector<int64_t>>& decision) {
  if (!decision) return {};
  return ir::Attr(ir::AttrList(decision->begin(), decision->end()));
}

// The instruction for a call of a primitive. Parameter names come from the
// table, and so do the values of parameters that the method does not have.
template <typename... Args>
Instruction ToInstruction(std::string_view name, const Args&... args) {
  const Primitive& primitive = *FindPrimitive(name);
  Instruction instruction;
  instruction.primitive = std::string(name);
  std::vector<Arg> values = {ToArg(args)...};
  for (size_t i = 0; i < primitive.parameters.size(); ++i) {
    const Parameter& parameter = primitive.parameters[i];
    instruction.args.emplace_back(std::string(parameter.name),
                                  i < values.size()
                                      ? std::move(values[i])
                                      : Arg{parameter.default_value});
  }
  return instruction;
}

// Runs `primitive` on the state and records it.
template <typename Fn, typename... Args>
auto Apply(ScheduleState& state, std::string_view name, const Fn& primitive,
           const Args&... args) -> decltype(primitive(state, args...)) {
  Transaction transaction(state, name);
  auto out = primitive(state, args...);
  if (!out.ok()) return out;
  TF_RETURN_IF_ERROR(transaction.CheckResult());
  Instruction instruction = ToInstruction(name, args...);
  if constexpr (!std::is_same_v<decltype(out), absl::Status>) {
    instruction.outputs = ToOutputs(*out);
  }
  transaction.Commit(std::move(instruction));
  return out;
}

// The same for samples, which return their decision.
template <typename Fn, typename Decision, typename... Args>
auto Sample(ScheduleState& state, std::string_view name, const Fn& primitive,
            Decision& decision, const Args&... args)
    -> decltype(primitive(state, args..., decision)) {
  Transaction transaction(state, name);
  auto out = primitive(state, args..., decision);
  if (!out.ok()) return out;
  Instruction instruction = ToInstruction(name, args...);
  instruction.outputs = ToOutputs(*out);
  instruction.decision = ToDecision(decision);
  transaction.Commit(std::move(instruction));
  return out;
}

}  // namespace

Schedule::Schedule(ir::IRModule module, uint64_t seed, ir::FloatRule floats)
    : state_(std::make_unique<ScheduleState>(std::move(module), seed, floats)) {
}
Schedule::Schedule(const Schedule& other)
    : state_(std::make_unique<ScheduleState>(*other.state_)) {}
Schedule::Schedule(Schedule&&) noexcept = default;
Schedule& Schedule::operator=(const Schedule& other) {
  if (this != &other) state_ = std::make_unique<ScheduleState>(*other.state_);
  return *this;
}
Schedule& Schedule::operator=(Schedule&&) noexcept = default;
Schedule::~Schedule() = default;

ir::IRModule Schedule::module() const { return state_->module(); }
const Trace& Schedule::trace() const { return state_->trace(); }
absl::StatusOr<ir::BlockPtr> Schedule::Get(BlockRv block) const {
  return state_->Get(block);
}
absl::StatusOr<ir::ForPtr> Schedule::Get(LoopRv loop) const {
  return state_->Get(loop);
}
absl::StatusOr<int64_t> Schedule::Get(ExprRv value) const {
  return state_->Get(value);
}

// --- Looking up ---

absl::StatusOr<BlockRv> Schedule::GetBlock(std::string_view name,
                                           std::string_view func_name) {
  return Apply(*state_, "get_block", schedule::GetBlock, name, func_name);
}
absl::StatusOr<std::vector<LoopRv>> Schedule::GetLoops(BlockRv block) {
  return Apply(*state_, "get_loops", schedule::GetLoops, block);
}
absl::StatusOr<std::vector<BlockRv>> Schedule::GetProducers(BlockRv block) {
  return Apply(*state_, "get_producers", schedule::GetProducers, block);
}
absl::StatusOr<std::vector<BlockRv>> Schedule::GetConsumers(BlockRv block) {
  return Apply(*state_, "get_consumers", schedule::GetConsumers, block);
}
absl::StatusOr<std::vector<BlockRv>> Schedule::GetChildBlocks(
    BlockOrLoop scope) {
  return Apply(*state_, "get_child_blocks", schedule::GetChildBlocks, scope);
}

// --- Sampling ---

absl::StatusOr<std::vector<ExprRv>> Schedule::SamplePerfectTile(
    LoopRv loop, int n, int max_innermost_factor,
    std::optional<std::vector<int64_t>> decision) {
  return Sample(*state_, "sample_perfect_tile", schedule::SamplePerfectTile,
                decision, loop, n, max_innermost_factor);
}
absl::StatusOr<std::vector<ExprRv>> Schedule::SampleTile(
    LoopRv loop, int n, int max_innermost_factor,
    std::optional<std::vector<int64_t>> decision) {
  return Sample(*state_, "sample_tile", schedule::SampleTile, decision, loop, n,
                max_innermost_factor);
}
absl::StatusOr<ExprRv> Schedule::SampleCategorical(
    std::vector<int64_t> candidates, std::vector<double> probs,
    std::optional<int64_t> decision) {
  return Sample(*state_, "sample_categorical", schedule::SampleCategorical,
                decision, candidates, probs);
}
absl::StatusOr<LoopRv> Schedule::SampleComputeLocation(
    BlockRv block, std::optional<int64_t> decision) {
  return Sample(*state_, "sample_compute_location",
                schedule::SampleComputeLocation, decision, block);
}

// --- Loops ---

absl::StatusOr<std::vector<LoopRv>> Schedule::Split(LoopRv loop,
                                                    std::vector<Factor> factors,
                                                    bool preserve_unit_iters,
                                                    bool disable_predication) {
  return Apply(*state_, "split", schedule::Split, loop, factors,
               preserve_unit_iters, disable_predication);
}
absl::StatusOr<LoopRv> Schedule::Fuse(std::vector<LoopRv> loops,
                                      bool preserve_unit_iters) {
  return Apply(*state_, "fuse", schedule::Fuse, loops, preserve_unit_iters);
}
absl::Status Schedule::Reorder(std::vector<LoopRv> ordered_loops) {
  return Apply(*state_, "reorder", schedule::Reorder, ordered_loops);
}
absl::StatusOr<LoopRv> Schedule::AddUnitLoop(BlockOrLoop where) {
  return Apply(*state_, "add_unit_loop", schedule::AddUnitLoop, where);
}
absl::Status Schedule::Parallel(LoopRv loop) {
  return Apply(*state_, "parallel", schedule::Parallel, loop);
}
absl::Status Schedule::Vectorize(LoopRv loop) {
  return Apply(*state_, "vectorize", schedule::Vectorize, loop);
}
absl::Status Schedule::Unroll(LoopRv loop) {
  return Apply(*state_, "unroll", schedule::Unroll, loop);
}
absl::Status Schedule::Bind(LoopRv loop, std::string thread_axis) {
  return Apply(*state_, "bind", schedule::Bind, loop, thread_axis);
}

// --- Where a block is computed ---

absl::Status Schedule::ComputeAt(BlockRv block, LoopRv loop,
                                 bool preserve_unit_loops, int index) {
  return Apply(*state_, "compute_at", schedule::ComputeAt, block, loop,
               preserve_unit_loops, index);
}
absl::Status Schedule::ReverseComputeAt(BlockRv block, LoopRv loop,
                                        bool preserve_unit_loops, int index) {
  return Apply(*state_, "reverse_compute_at", schedule::ReverseComputeAt, block,
               loop, preserve_unit_loops, index);
}
absl::Status Schedule::ComputeInline(BlockRv block) {
  return Apply(*state_, "compute_inline", schedule::ComputeInline, block);
}
absl::Status Schedule::ReverseComputeInline(BlockRv block) {
  return Apply(*state_, "reverse_compute_inline",
               schedule::ReverseComputeInline, block);
}

// --- Memory ---

absl::StatusOr<BlockRv> Schedule::CacheRead(BlockRv block,
                                            int read_buffer_index,
                                            std::string storage_scope,
                                            std::vector<BlockRv> consumers) {
  return Apply(*state_, "cache_read", schedule::CacheRead, block,
               read_buffer_index, storage_scope, consumers);
}
absl::StatusOr<BlockRv> Schedule::CacheWrite(BlockRv block,
                                             int write_buffer_index,
                                             std::string storage_scope,
                                             std::vector<BlockRv> consumers) {
  return Apply(*state_, "cache_write", schedule::CacheWrite, block,
               write_buffer_index, storage_scope, consumers);
}
absl::StatusOr<BlockRv> Schedule::Reindex(BlockRv block, bool read,
                                          int buffer_index) {
  return Apply(
      *state_, "reindex",
      [](ScheduleState& state, BlockRv of, BufferOf buffer) {
        return schedule::Reindex(state, of, buffer.read, buffer.index);
      },
      block, BufferOf{read, buffer_index});
}
absl::Status Schedule::SetScope(BlockRv block, int buffer_index,
                                std::string scope) {
  return Apply(*state_, "set_scope", schedule::SetScope, block, buffer_index,
               scope);
}
absl::Status Schedule::StorageAlign(BlockRv block, int buffer_index, int axis,
                                    int factor, int offset) {
  return Apply(*state_, "storage_align", schedule::StorageAlign, block,
               buffer_index, axis, factor, offset);
}
absl::Status Schedule::TransformLayout(BlockRv block, bool read,
                                       int buffer_index,
                                       std::string index_map) {
  return Apply(
      *state_, "transform_layout",
      [](ScheduleState& state, BlockRv of, BufferOf buffer,
         const std::string& map) {
        return schedule::TransformLayout(state, of, buffer.read, buffer.index,
                                         map);
      },
      block, BufferOf{read, buffer_index}, index_map);
}
absl::Status Schedule::TransformBlockLayout(BlockRv block,
                                            std::string index_map) {
  return Apply(*state_, "transform_block_layout",
               schedule::TransformBlockLayout, block, index_map);
}

// --- Reductions ---

absl::StatusOr<BlockRv> Schedule::DecomposeReduction(BlockRv block,
                                                     LoopRv loop) {
  return Apply(*state_, "decompose_reduction", schedule::DecomposeReduction,
               block, loop);
}
absl::StatusOr<BlockRv> Schedule::Rfactor(LoopRv loop, int factor_axis) {
  return Apply(*state_, "rfactor", schedule::Rfactor, loop, factor_axis);
}
absl::StatusOr<std::vector<BlockRv>> Schedule::Fission(BlockRv block) {
  return Apply(*state_, "fission", schedule::Fission, block);
}
absl::Status Schedule::SkipZeros(BlockRv block) {
  return Apply(*state_, "skip_zeros", schedule::SkipZeros, block);
}
absl::StatusOr<std::vector<BlockRv>> Schedule::Winograd(BlockRv block,
                                                        int tile) {
  return Apply(*state_, "winograd", schedule::Winograd, block, tile);
}
absl::StatusOr<std::vector<BlockRv>> Schedule::OnlineSoftmax(BlockRv block,
                                                             int64_t chunk,
                                                             int64_t lanes) {
  return Apply(*state_, "online_softmax", schedule::OnlineSoftmax, block, chunk,
               lanes);
}
absl::StatusOr<std::vector<BlockRv>> Schedule::OnlineProduct(BlockRv block,
                                                             Number tile,
                                                             int64_t apart,
                                                             Number chunk) {
  return Apply(*state_, "online_product", schedule::OnlineProduct, block, tile,
               apart, chunk);
}
absl::Status Schedule::PadEinsum(BlockRv block, std::vector<int64_t> padding) {
  return Apply(
      *state_, "pad_einsum",
      [](ScheduleState& state, BlockRv of,
         const std::vector<int64_t>& numbers) {
        return schedule::PadEinsum(state, of, numbers);
      },
      block, padding);
}
absl::Status Schedule::PadSoftmax(BlockRv block, std::vector<int64_t> padding,
                                  int64_t depth) {
  return Apply(*state_, "pad_softmax", schedule::PadSoftmax, block, padding,
               depth);
}

// --- Tensorization ---

absl::StatusOr<BlockRv> Schedule::Blockize(LoopRv loop) {
  return Apply(*state_, "blockize", schedule::Blockize, loop);
}
absl::Status Schedule::Tensorize(BlockOrLoop where, std::string intrinsic) {
  return Apply(*state_, "tensorize", schedule::Tensorize, where, intrinsic);
}
absl::Status Schedule::CallLibrary(BlockRv block, std::string kernel) {
  return Apply(*state_, "call_library", schedule::CallLibrary, block, kernel);
}

// --- Annotations ---

absl::Status Schedule::Annotate(BlockOrLoop where, std::string key,
                                AnnValue value) {
  return Apply(*state_, "annotate", schedule::Annotate, where, key, value);
}
absl::Status Schedule::Unannotate(BlockOrLoop where, std::string key) {
  return Apply(*state_, "unannotate", schedule::Unannotate, where, key);
}
absl::Status Schedule::EnterPostproc() {
  return Apply(*state_, "enter_postproc",
               [](ScheduleState&) { return absl::OkStatus(); });
}

}  // namespace tilefarm::schedule

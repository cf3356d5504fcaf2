#include "compiler/schedule/schedule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/verifier.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/loop_primitives.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {
namespace {

// Undoes everything unless committed; committing records the instruction.
class Transaction {
 public:
  explicit Transaction(ScheduleState& state)
      : state_(state), before_(state.Save()) {}
  ~Transaction() {
    if (!committed_) state_.Restore(std::move(before_));
  }
  // What every primitive must leave behind, whatever it changed.
  absl::Status CheckResult(std::string_view primitive) const {
    const bool changed = state_.module().functions != before_.module.functions;
    if (!changed) return absl::OkStatus();
    TF_RETURN_IF_ERROR(CheckSizes(primitive));
    if (ir::VerifiesEveryStep()) {
      const absl::Status verified = ir::Verify(state_.module());
      if (!verified.ok()) {
        return absl::InternalError(
            absl::StrCat(std::string(primitive),
                         " made an illegal program: ", verified.message()));
      }
    }
    TF_RETURN_IF_ERROR(CheckConcurrentLoops(state_, primitive));
    return CheckLibraryBlocks(state_, primitive);
  }
  void Commit(Instruction instruction) {
    state_.trace().instructions.push_back(std::move(instruction));
    committed_ = true;
  }

 private:
  // Copies, padding and partial results may outgrow what a program may have.
  absl::Status CheckSizes(std::string_view primitive) const {
    for (const ir::PrimFuncPtr& function : state_.module().functions) {
      for (const ir::BlockPtr& block : state_.BlocksOf(function.get())) {
        for (const ir::Buffer& buffer : block->allocs) {
          const absl::Status size = ir::CheckBufferSize(*buffer);
          if (size.ok()) continue;
          const absl::string_view reason = size.message();
          return state_.Illegal(primitive, block.get(),
                                std::string_view(reason.data(), reason.size()));
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

Arg ToArg(BlockRv v) { return {ToRv(v)}; }
Arg ToArg(LoopRv v) { return {ToRv(v)}; }
Arg ToArg(const BlockOrLoop& v) {
  return std::visit([](auto rv) { return ToArg(rv); }, v);
}
template <typename T>
Arg Constant(T value) {
  return {ir::Attr(std::move(value))};
}
Arg Constants(const std::vector<int64_t>& values) {
  return {ir::Attr(ir::AttrList(values.begin(), values.end()))};
}
Arg Constants(const std::vector<double>& values) {
  return {ir::Attr(ir::AttrList(values.begin(), values.end()))};
}
// As Parse makes lists: one attribute where all items are constants.
Arg ToArg(const std::vector<Factor>& factors) {
  ArgList list;
  ir::AttrList constants;
  for (const Factor& factor : factors) {
    if (!factor.has_value()) {
      list.push_back(Arg{ir::Attr()});
      constants.push_back(ir::Attr());
    } else if (const auto* number = std::get_if<int64_t>(&*factor)) {
      list.push_back(Constant(*number));
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
// ("read", 0)
Arg BufferArg(bool read, int index) {
  return {ir::Attr(
      ir::AttrList{ir::Attr(read ? "read" : "write"), ir::Attr(index)})};
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

using Args = std::vector<std::pair<std::string, Arg>>;

// Runs a primitive that has results, then one that has none.
template <typename Fn>
auto Apply(ScheduleState& state, std::string_view name, Args args, Fn&& fn)
    -> decltype(fn()) {
  Transaction transaction(state);
  auto out = fn();
  if (!out.ok()) return out;
  TF_RETURN_IF_ERROR(transaction.CheckResult(name));
  Instruction instruction{std::string(name), std::move(args), {}, {}};
  if constexpr (!std::is_same_v<decltype(out), absl::Status>) {
    instruction.outputs = ToOutputs(*out);
  }
  transaction.Commit(std::move(instruction));
  return out;
}

template <typename Decision, typename Fn>
auto Sample(ScheduleState& state, std::string_view name, Args args,
            Decision& decision, Fn&& fn) -> decltype(fn(decision)) {
  Transaction transaction(state);
  auto out = fn(decision);
  if (!out.ok()) return out;
  transaction.Commit({std::string(name), std::move(args), ToOutputs(*out),
                      ToDecision(decision)});
  return out;
}

}  // namespace

Schedule::Schedule(ir::IRModule module, uint64_t seed)
    : state_(std::make_unique<ScheduleState>(std::move(module), seed)) {}
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
  return state_->Get("get", block);
}
absl::StatusOr<ir::ForPtr> Schedule::Get(LoopRv loop) const {
  return state_->Get("get", loop);
}
absl::StatusOr<int64_t> Schedule::Get(ExprRv value) const {
  return state_->Get("get", value);
}

// --- Looking up ---

absl::StatusOr<BlockRv> Schedule::GetBlock(std::string_view name,
                                           std::string_view func_name) {
  return Apply(*state_, "get_block",
               {{"name", Constant(std::string(name))},
                {"func_name", Constant(std::string(func_name))}},
               [&] { return schedule::GetBlock(*state_, name, func_name); });
}
absl::StatusOr<std::vector<LoopRv>> Schedule::GetLoops(BlockRv block) {
  return Apply(*state_, "get_loops", {{"block", ToArg(block)}},
               [&] { return schedule::GetLoops(*state_, block); });
}
absl::StatusOr<std::vector<BlockRv>> Schedule::GetProducers(BlockRv block) {
  return Apply(*state_, "get_producers", {{"block", ToArg(block)}},
               [&] { return schedule::GetProducers(*state_, block); });
}
absl::StatusOr<std::vector<BlockRv>> Schedule::GetConsumers(BlockRv block) {
  return Apply(*state_, "get_consumers", {{"block", ToArg(block)}},
               [&] { return schedule::GetConsumers(*state_, block); });
}
absl::StatusOr<std::vector<BlockRv>> Schedule::GetChildBlocks(
    BlockOrLoop scope) {
  return Apply(*state_, "get_child_blocks", {{"block_or_loop", ToArg(scope)}},
               [&] { return schedule::GetChildBlocks(*state_, scope); });
}

// --- Sampling ---

absl::StatusOr<std::vector<ExprRv>> Schedule::SamplePerfectTile(
    LoopRv loop, int n, int max_innermost_factor,
    std::optional<std::vector<int64_t>> decision) {
  return Sample(*state_, "sample_perfect_tile",
                {{"loop", ToArg(loop)},
                 {"n", Constant(n)},
                 {"max_innermost_factor", Constant(max_innermost_factor)}},
                decision, [&](auto& d) {
                  return schedule::SamplePerfectTile(*state_, loop, n,
                                                     max_innermost_factor, d);
                });
}
absl::StatusOr<std::vector<ExprRv>> Schedule::SampleTile(
    LoopRv loop, int n, int max_innermost_factor,
    std::optional<std::vector<int64_t>> decision) {
  return Sample(*state_, "sample_tile",
                {{"loop", ToArg(loop)},
                 {"n", Constant(n)},
                 {"max_innermost_factor", Constant(max_innermost_factor)}},
                decision, [&](auto& d) {
                  return schedule::SampleTile(*state_, loop, n,
                                              max_innermost_factor, d);
                });
}
absl::StatusOr<ExprRv> Schedule::SampleCategorical(
    std::vector<int64_t> candidates, std::vector<double> probs,
    std::optional<int64_t> decision) {
  return Sample(
      *state_, "sample_categorical",
      {{"candidates", Constants(candidates)}, {"probs", Constants(probs)}},
      decision, [&](auto& d) {
        return schedule::SampleCategorical(*state_, candidates, probs, d);
      });
}
absl::StatusOr<LoopRv> Schedule::SampleComputeLocation(
    BlockRv block, std::optional<int64_t> decision) {
  return Sample(*state_, "sample_compute_location", {{"block", ToArg(block)}},
                decision, [&](auto& d) {
                  return schedule::SampleComputeLocation(*state_, block, d);
                });
}

// --- Loops ---

absl::StatusOr<std::vector<LoopRv>> Schedule::Split(LoopRv loop,
                                                    std::vector<Factor> factors,
                                                    bool preserve_unit_iters,
                                                    bool disable_predication) {
  return Apply(*state_, "split",
               {{"loop", ToArg(loop)},
                {"factors", ToArg(factors)},
                {"preserve_unit_iters", Constant(preserve_unit_iters)},
                {"disable_predication", Constant(disable_predication)}},
               [&] {
                 return schedule::Split(*state_, loop, factors,
                                        preserve_unit_iters,
                                        disable_predication);
               });
}
absl::StatusOr<LoopRv> Schedule::Fuse(std::vector<LoopRv> loops,
                                      bool preserve_unit_iters) {
  return Apply(
      *state_, "fuse",
      {{"loops", ToArg(loops)},
       {"preserve_unit_iters", Constant(preserve_unit_iters)}},
      [&] { return schedule::Fuse(*state_, loops, preserve_unit_iters); });
}
absl::Status Schedule::Reorder(std::vector<LoopRv> ordered_loops) {
  return Apply(*state_, "reorder", {{"loops", ToArg(ordered_loops)}},
               [&] { return schedule::Reorder(*state_, ordered_loops); });
}
absl::StatusOr<LoopRv> Schedule::AddUnitLoop(BlockOrLoop where) {
  return Apply(*state_, "add_unit_loop", {{"block_or_loop", ToArg(where)}},
               [&] { return schedule::AddUnitLoop(*state_, where); });
}
absl::Status Schedule::Parallel(LoopRv loop) {
  return Apply(*state_, "parallel", {{"loop", ToArg(loop)}},
               [&] { return schedule::Parallel(*state_, loop); });
}
absl::Status Schedule::Vectorize(LoopRv loop) {
  return Apply(*state_, "vectorize", {{"loop", ToArg(loop)}},
               [&] { return schedule::Vectorize(*state_, loop); });
}
absl::Status Schedule::Unroll(LoopRv loop) {
  return Apply(*state_, "unroll", {{"loop", ToArg(loop)}},
               [&] { return schedule::Unroll(*state_, loop); });
}
absl::Status Schedule::Bind(LoopRv loop, std::string thread_axis) {
  return Apply(*state_, "bind",
               {{"loop", ToArg(loop)}, {"thread_axis", Constant(thread_axis)}},
               [&] { return schedule::Bind(*state_, loop, thread_axis); });
}

// --- Where a block is computed ---

absl::Status Schedule::ComputeAt(BlockRv block, LoopRv loop,
                                 bool preserve_unit_loops, int index) {
  return Apply(*state_, "compute_at",
               {{"block", ToArg(block)},
                {"loop", ToArg(loop)},
                {"preserve_unit_loops", Constant(preserve_unit_loops)},
                {"index", Constant(index)}},
               [&] {
                 return schedule::ComputeAt(*state_, block, loop,
                                            preserve_unit_loops, index);
               });
}
absl::Status Schedule::ReverseComputeAt(BlockRv block, LoopRv loop,
                                        bool preserve_unit_loops, int index) {
  return Apply(*state_, "reverse_compute_at",
               {{"block", ToArg(block)},
                {"loop", ToArg(loop)},
                {"preserve_unit_loops", Constant(preserve_unit_loops)},
                {"index", Constant(index)}},
               [&] {
                 return schedule::ReverseComputeAt(*state_, block, loop,
                                                   preserve_unit_loops, index);
               });
}
absl::Status Schedule::ComputeInline(BlockRv block) {
  return Apply(*state_, "compute_inline", {{"block", ToArg(block)}},
               [&] { return schedule::ComputeInline(*state_, block); });
}
absl::Status Schedule::ReverseComputeInline(BlockRv block) {
  return Apply(*state_, "reverse_compute_inline", {{"block", ToArg(block)}},
               [&] { return schedule::ReverseComputeInline(*state_, block); });
}

// --- Memory ---

absl::StatusOr<BlockRv> Schedule::CacheRead(BlockRv block,
                                            int read_buffer_index,
                                            std::string storage_scope) {
  return Apply(*state_, "cache_read",
               {{"block", ToArg(block)},
                {"read_buffer_index", Constant(read_buffer_index)},
                {"storage_scope", Constant(storage_scope)}},
               [&] {
                 return schedule::CacheRead(*state_, block, read_buffer_index,
                                            storage_scope);
               });
}
absl::StatusOr<BlockRv> Schedule::CacheWrite(BlockRv block,
                                             int write_buffer_index,
                                             std::string storage_scope) {
  return Apply(*state_, "cache_write",
               {{"block", ToArg(block)},
                {"write_buffer_index", Constant(write_buffer_index)},
                {"storage_scope", Constant(storage_scope)}},
               [&] {
                 return schedule::CacheWrite(*state_, block, write_buffer_index,
                                             storage_scope);
               });
}
absl::StatusOr<BlockRv> Schedule::Reindex(BlockRv block, bool read,
                                          int buffer_index) {
  return Apply(
      *state_, "reindex",
      {{"block", ToArg(block)}, {"buffer", BufferArg(read, buffer_index)}},
      [&] { return schedule::Reindex(*state_, block, read, buffer_index); });
}
absl::Status Schedule::SetScope(BlockRv block, int buffer_index,
                                std::string scope) {
  return Apply(
      *state_, "set_scope",
      {{"block", ToArg(block)},
       {"buffer_index", Constant(buffer_index)},
       {"storage_scope", Constant(scope)}},
      [&] { return schedule::SetScope(*state_, block, buffer_index, scope); });
}
absl::Status Schedule::StorageAlign(BlockRv block, int buffer_index, int axis,
                                    int factor, int offset) {
  return Apply(*state_, "storage_align",
               {{"block", ToArg(block)},
                {"buffer_index", Constant(buffer_index)},
                {"axis", Constant(axis)},
                {"factor", Constant(factor)},
                {"offset", Constant(offset)}},
               [&] {
                 return schedule::StorageAlign(*state_, block, buffer_index,
                                               axis, factor, offset);
               });
}
absl::Status Schedule::TransformLayout(BlockRv block, bool read,
                                       int buffer_index,
                                       std::string index_map) {
  return Apply(*state_, "transform_layout",
               {{"block", ToArg(block)},
                {"buffer", BufferArg(read, buffer_index)},
                {"index_map", Constant(index_map)},
                {"pad_value", Arg{ir::Attr()}},
                {"assume_injective_transform", Constant(false)}},
               [&] {
                 return schedule::TransformLayout(*state_, block, read,
                                                  buffer_index, index_map);
               });
}

// --- Reductions ---

absl::StatusOr<BlockRv> Schedule::DecomposeReduction(BlockRv block,
                                                     LoopRv loop) {
  return Apply(*state_, "decompose_reduction",
               {{"block", ToArg(block)}, {"loop", ToArg(loop)}}, [&] {
                 return schedule::DecomposeReduction(*state_, block, loop);
               });
}
absl::StatusOr<BlockRv> Schedule::Rfactor(LoopRv loop, int factor_axis) {
  return Apply(*state_, "rfactor",
               {{"loop", ToArg(loop)}, {"factor_axis", Constant(factor_axis)}},
               [&] { return schedule::Rfactor(*state_, loop, factor_axis); });
}
absl::Status Schedule::SkipZeros(BlockRv block) {
  return Apply(*state_, "skip_zeros", {{"block", ToArg(block)}},
               [&] { return schedule::SkipZeros(*state_, block); });
}

absl::StatusOr<std::vector<BlockRv>> Schedule::Winograd(BlockRv block,
                                                        int tile) {
  return Apply(*state_, "winograd",
               {{"block", ToArg(block)}, {"tile", Constant(tile)}},
               [&] { return schedule::Winograd(*state_, block, tile); });
}

absl::StatusOr<std::vector<BlockRv>> Schedule::OnlineSoftmax(BlockRv block,
                                                             int64_t chunk,
                                                             int64_t lanes) {
  return Apply(
      *state_, "online_softmax",
      {{"block", ToArg(block)},
       {"chunk", Constant(chunk)},
       {"lanes", Constant(lanes)}},
      [&] { return schedule::OnlineSoftmax(*state_, block, chunk, lanes); });
}

absl::Status Schedule::PadEinsum(BlockRv block, std::vector<int64_t> padding) {
  return Apply(*state_, "pad_einsum",
               {{"block", ToArg(block)},
                {"padding",
                 Arg{ir::Attr(ir::AttrList(padding.begin(), padding.end()))}}},
               [&] { return schedule::PadEinsum(*state_, block, padding); });
}

// --- Tensorization ---

absl::StatusOr<BlockRv> Schedule::Blockize(LoopRv loop) {
  return Apply(
      *state_, "blockize",
      {{"target", ToArg(loop)}, {"preserve_unit_iters", Constant(true)}},
      [&] { return schedule::Blockize(*state_, loop); });
}
absl::Status Schedule::Tensorize(BlockOrLoop where, std::string intrinsic) {
  return Apply(*state_, "tensorize",
               {{"block_or_loop", ToArg(where)},
                {"tensor_intrin", Constant(intrinsic)},
                {"preserve_unit_iters", Constant(true)}},
               [&] { return schedule::Tensorize(*state_, where, intrinsic); });
}

absl::Status Schedule::CallLibrary(BlockRv block, std::string kernel) {
  return Apply(*state_, "call_library",
               {{"block", ToArg(block)}, {"kernel", Constant(kernel)}},
               [&] { return schedule::CallLibrary(*state_, block, kernel); });
}

// --- Annotations ---

absl::Status Schedule::Annotate(BlockOrLoop where, std::string key,
                                AnnValue value) {
  Arg arg;
  if (const auto* constant = std::get_if<ir::Attr>(&value)) {
    arg.value = *constant;
  } else {
    arg.value = ToRv(std::get<ExprRv>(value));
  }
  return Apply(*state_, "annotate",
               {{"block_or_loop", ToArg(where)},
                {"ann_key", Constant(key)},
                {"ann_val", std::move(arg)}},
               [&] { return schedule::Annotate(*state_, where, key, value); });
}
absl::Status Schedule::Unannotate(BlockOrLoop where, std::string key) {
  return Apply(*state_, "unannotate",
               {{"block_or_loop", ToArg(where)}, {"ann_key", Constant(key)}},
               [&] { return schedule::Unannotate(*state_, where, key); });
}
absl::Status Schedule::EnterPostproc() {
  return Apply(*state_, "enter_postproc", {}, [] { return absl::OkStatus(); });
}

}  // namespace tilefarm::schedule

// Applies a trace: one explicit table from a primitive's name to the method of
// the Schedule, whose parameters say how to read the arguments.
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/instruction_reader.h"
#include "compiler/schedule/loop_primitives.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// A friend of Schedule, to forget results that a trace does not name.
class Replayer {
 public:
  static ScheduleState& State(Schedule& schedule) { return *schedule.state_; }
};

namespace {

using S = Schedule;
using R = InstructionReader;

// The ids of the results.
using Ids = absl::StatusOr<std::vector<int>>;

Ids ToIds(const absl::Status& status) {
  if (!status.ok()) return status;
  return std::vector<int>();
}
template <typename T>
Ids ToIds(const absl::StatusOr<T>& result) {
  if (!result.ok()) return result.status();
  return std::vector<int>{result->id};
}
template <typename T>
Ids ToIds(const absl::StatusOr<std::vector<T>>& result) {
  if (!result.ok()) return result.status();
  std::vector<int> ids;
  for (const T& rv : *result) ids.push_back(rv.id);
  return ids;
}

// Argument `i` as what a method takes; a decision is no argument.
void Read(R& r, size_t i, BlockRv& out) { out = r.Block(i); }
void Read(R& r, size_t i, LoopRv& out) { out = r.Loop(i); }
void Read(R& r, size_t i, BlockOrLoop& out) { out = r.Where(i); }
void Read(R& r, size_t i, int& out) { out = r.Small(i); }
void Read(R& r, size_t i, int64_t& out) { out = r.Int(i); }
void Read(R& r, size_t i, Number& out) { out = r.ToNumber(i); }
void Read(R& r, size_t i, bool& out) { out = r.Bool(i); }
void Read(R& r, size_t i, std::string& out) { out = r.Text(i); }
void Read(R& r, size_t i, AnnValue& out) { out = r.Annotation(i); }
void Read(R& r, size_t i, std::vector<LoopRv>& out) { out = r.Loops(i); }
void Read(R& r, size_t i, std::vector<BlockRv>& out) { out = r.Blocks(i); }
void Read(R& r, size_t i, std::vector<Factor>& out) { out = r.Factors(i); }
void Read(R& r, size_t i, std::vector<int64_t>& out) { out = r.Ints(i); }
void Read(R& r, size_t i, std::vector<double>& out) { out = r.Floats(i); }
void Read(R& r, size_t, std::optional<int64_t>& out) { out = r.IntDecision(); }
void Read(R& r, size_t, std::optional<std::vector<int64_t>>& out) {
  out = r.ListDecision();
}

template <typename T>
using Stored =
    std::conditional_t<std::is_same_v<T, std::string_view>, std::string, T>;

template <typename Result, typename... Args, size_t... I>
Ids Call(Result (S::*method)(Args...), S& s, R& r, std::index_sequence<I...>) {
  std::tuple<Stored<Args>...> args;
  (Read(r, I, std::get<I>(args)), ...);
  // A wrong argument must not reach the call.
  if (!r.status().ok()) return r.status();
  return ToIds((s.*method)(std::move(std::get<I>(args))...));
}
template <typename Result, typename... Args>
Ids CallWith(Result (S::*method)(Args...), S& s, R& r) {
  return Call(method, s, r, std::index_sequence_for<Args...>());
}

// Reads the arguments that the method takes, then calls it.
template <auto method>
Ids Method(S& s, R& r) {
  return CallWith(method, s, r);
}

struct Entry {
  std::string_view name;
  Ids (*call)(S& s, R& r);
};

const Entry kEntries[] = {
    {"get_block", Method<&S::GetBlock>},
    {"get_loops", Method<&S::GetLoops>},
    {"get_producers", Method<&S::GetProducers>},
    {"get_consumers", Method<&S::GetConsumers>},
    {"get_child_blocks", Method<&S::GetChildBlocks>},
    {"sample_perfect_tile", Method<&S::SamplePerfectTile>},
    {"sample_tile", Method<&S::SampleTile>},
    {"sample_categorical", Method<&S::SampleCategorical>},
    {"sample_compute_location", Method<&S::SampleComputeLocation>},
    {"split", Method<&S::Split>},
    {"fuse", Method<&S::Fuse>},
    {"reorder", Method<&S::Reorder>},
    {"add_unit_loop", Method<&S::AddUnitLoop>},
    {"parallel", Method<&S::Parallel>},
    {"vectorize", Method<&S::Vectorize>},
    {"unroll", Method<&S::Unroll>},
    {"bind", Method<&S::Bind>},
    {"compute_at", Method<&S::ComputeAt>},
    {"reverse_compute_at", Method<&S::ReverseComputeAt>},
    {"compute_inline", Method<&S::ComputeInline>},
    {"reverse_compute_inline", Method<&S::ReverseComputeInline>},
    {"cache_read", Method<&S::CacheRead>},
    {"cache_write", Method<&S::CacheWrite>},
    {"set_scope", Method<&S::SetScope>},
    {"storage_align", Method<&S::StorageAlign>},
    {"transform_block_layout", Method<&S::TransformBlockLayout>},
    {"decompose_reduction", Method<&S::DecomposeReduction>},
    {"rfactor", Method<&S::Rfactor>},
    {"fission", Method<&S::Fission>},
    {"skip_zeros", Method<&S::SkipZeros>},
    {"winograd", Method<&S::Winograd>},
    {"online_softmax", Method<&S::OnlineSoftmax>},
    {"online_product", Method<&S::OnlineProduct>},
    {"pad_einsum", Method<&S::PadEinsum>},
    {"pad_softmax", Method<&S::PadSoftmax>},
    {"blockize", Method<&S::Blockize>},
    {"tensorize", Method<&S::Tensorize>},
    {"call_library", Method<&S::CallLibrary>},
    {"annotate", Method<&S::Annotate>},
    {"unannotate", Method<&S::Unannotate>},
    {"enter_postproc", Method<&S::EnterPostproc>},
    {"reindex",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const auto [read, index] = r.Buffer(1);
       if (!r.status().ok()) return r.status();
       return ToIds(s.Reindex(block, read, index));
     }},
    {"transform_layout",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const auto [read, index] = r.Buffer(1);
       const std::string map = r.Text(2);
       r.MustBeNone(3);
       if (!r.status().ok()) return r.status();
       return ToIds(s.TransformLayout(block, read, index, map));
     }},
};

const Entry* FindEntry(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

absl::Status ReplayOne(const Instruction& instruction, Schedule& schedule,
                       std::vector<int>& ids) {
  const Entry* entry = FindEntry(instruction.primitive);
  if (entry == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown primitive \"", instruction.primitive, "\""));
  }
  InstructionReader reader(instruction, ids);
  TF_ASSIGN_OR_RETURN(const std::vector<int> results,
                      entry->call(schedule, reader));
  ScheduleState& state = Replayer::State(schedule);
  if (instruction.outputs.empty()) {
    // Nobody can name them: the ids are free, as in the trace.
    state.ForgetLastVariables(results.size());
    state.trace().instructions.back().outputs.clear();
    return absl::OkStatus();
  }
  if (results.size() != instruction.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        instruction.primitive, ": it gives ", results.size(),
        results.size() == 1 ? " result, " : " results, ",
        instruction.outputs.size(),
        instruction.outputs.size() == 1 ? " is named" : " are named"));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const int id = instruction.outputs[i].id;
    if (id < 0 || id > 1 << 24) {
      return absl::InvalidArgumentError(absl::StrCat(
          instruction.primitive, ": result id ", id, " is out of range"));
    }
    if (id >= static_cast<int>(ids.size())) ids.resize(id + 1, -1);
    ids[id] = results[i];
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PartialReplay::Advance(const Trace& trace, size_t end) {
  for (; next_ < end; ++next_) {
    const Instruction& instruction = trace.instructions[next_];
    const absl::Status status = ReplayOne(instruction, schedule_, ids_);
    if (status.ok()) continue;
    std::string text = FindPrimitive(instruction.primitive) == nullptr
                           ? instruction.primitive
                           : Trace{{instruction}}.Print();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return absl::Status(status.code(),
                        absl::StrCat("instruction ", next_ + 1, " `", text,
                                     "`: ", std::string(status.message())));
  }
  return absl::OkStatus();
}

absl::Status PartialReplay::AdvanceAtOnce(const Trace& trace, size_t end) {
  ScheduleState& state = Replayer::State(schedule_);
  state.set_defers_concurrency(true);
  TF_RETURN_IF_ERROR(Advance(trace, end));
  state.set_defers_concurrency(false);
  return CheckConcurrentLoops(state);
}

absl::StatusOr<Schedule> Replay(const Trace& trace, ir::IRModule module,
                                uint64_t seed, ir::FloatRule floats) {
  PartialReplay replay(std::move(module), seed, floats);
  TF_RETURN_IF_ERROR(replay.Advance(trace, trace.instructions.size()));
  return std::move(replay).Take();
}

}  // namespace tilefarm::schedule

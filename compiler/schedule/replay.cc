// Applies a trace: one explicit table from a primitive's name to the call of
// the Schedule.
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/instruction_reader.h"
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

// The ids of the results.
using Ids = absl::StatusOr<std::vector<int>>;

template <typename T>
Ids One(absl::StatusOr<T> result) {
  if (!result.ok()) return result.status();
  return std::vector<int>{result->id};
}
template <typename T>
Ids Many(absl::StatusOr<std::vector<T>> result) {
  if (!result.ok()) return result.status();
  std::vector<int> ids;
  for (const T& rv : *result) ids.push_back(rv.id);
  return ids;
}
Ids None(absl::Status status) {
  if (!status.ok()) return status;
  return std::vector<int>();
}

using S = Schedule;
using R = InstructionReader;

struct Entry {
  std::string_view name;
  // Reads the arguments, then calls, unless the reader has failed.
  Ids (*call)(S& s, R& r);
};

// Arguments are read before the call in every entry: a wrong one must not
// reach it.
#define TF_READ(r) \
  if (!(r).status().ok()) return (r).status()

const Entry kEntries[] = {
    {"get_block",
     [](S& s, R& r) -> Ids {
       const std::string name = r.Text(0), function = r.Text(1);
       TF_READ(r);
       return One(s.GetBlock(name, function));
     }},
    {"get_loops",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       TF_READ(r);
       return Many(s.GetLoops(block));
     }},
    {"get_producers",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       TF_READ(r);
       return Many(s.GetProducers(block));
     }},
    {"get_consumers",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       TF_READ(r);
       return Many(s.GetConsumers(block));
     }},
    {"get_child_blocks",
     [](S& s, R& r) -> Ids {
       const BlockOrLoop where = r.Where(0);
       TF_READ(r);
       return Many(s.GetChildBlocks(where));
     }},
    {"sample_perfect_tile",
     [](S& s, R& r) -> Ids {
       const LoopRv loop = r.Loop(0);
       const int n = r.Small(1), most = r.Small(2);
       auto decision = r.ListDecision();
       TF_READ(r);
       return Many(s.SamplePerfectTile(loop, n, most, std::move(decision)));
     }},
    {"sample_tile",
     [](S& s, R& r) -> Ids {
       const LoopRv loop = r.Loop(0);
       const int n = r.Small(1), most = r.Small(2);
       auto decision = r.ListDecision();
       TF_READ(r);
       return Many(s.SampleTile(loop, n, most, std::move(decision)));
     }},
    {"sample_categorical",
     [](S& s, R& r) -> Ids {
       auto candidates = r.Ints(0);
       auto probs = r.Floats(1);
       const auto decision = r.IntDecision();
       TF_READ(r);
       return One(s.SampleCategorical(std::move(candidates), std::move(probs),
                                      decision));
     }},
    {"sample_compute_location",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const auto decision = r.IntDecision();
       TF_READ(r);
       return One(s.SampleComputeLocation(block, decision));
     }},
    {"split",
     [](S& s, R& r) -> Ids {
       const LoopRv loop = r.Loop(0);
       auto factors = r.Factors(1);
       const bool preserve = r.Bool(2), unguarded = r.Bool(3);
       TF_READ(r);
       return Many(s.Split(loop, std::move(factors), preserve, unguarded));
     }},
    {"fuse",
     [](S& s, R& r) -> Ids {
       auto loops = r.Loops(0);
       const bool preserve = r.Bool(1);
       TF_READ(r);
       return One(s.Fuse(std::move(loops), preserve));
     }},
    {"reorder",
     [](S& s, R& r) -> Ids {
       auto loops = r.Loops(0);
       TF_READ(r);
       return None(s.Reorder(std::move(loops)));
     }},
    {"add_unit_loop",
     [](S& s, R& r) -> Ids {
       const BlockOrLoop where = r.Where(0);
       TF_READ(r);
       return One(s.AddUnitLoop(where));
     }},
    {"parallel",
     [](S& s, R& r) -> Ids {
       const LoopRv loop = r.Loop(0);
       TF_READ(r);
       return None(s.Parallel(loop));
     }},
    {"vectorize",
     [](S& s, R& r) -> Ids {
       const LoopRv loop = r.Loop(0);
       TF_READ(r);
       return None(s.Vectorize(loop));
     }},
    {"unroll",
     [](S& s, R& r) -> Ids {
       const LoopRv loop = r.Loop(0);
       TF_READ(r);
       return None(s.Unroll(loop));
     }},
    {"bind",
     [](S& s, R& r) -> Ids {
       const LoopRv loop = r.Loop(0);
       const std::string axis = r.Text(1);
       TF_READ(r);
       return None(s.Bind(loop, axis));
     }},
    {"compute_at",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const LoopRv loop = r.Loop(1);
       const bool preserve = r.Bool(2);
       const int index = r.Small(3);
       TF_READ(r);
       return None(s.ComputeAt(block, loop, preserve, index));
     }},
    {"reverse_compute_at",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const LoopRv loop = r.Loop(1);
       const bool preserve = r.Bool(2);
       const int index = r.Small(3);
       TF_READ(r);
       return None(s.ReverseComputeAt(block, loop, preserve, index));
     }},
    {"compute_inline",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       TF_READ(r);
       return None(s.ComputeInline(block));
     }},
    {"reverse_compute_inline",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       TF_READ(r);
       return None(s.ReverseComputeInline(block));
     }},
    {"cache_read",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const int index = r.Small(1);
       const std::string scope = r.Text(2);
       TF_READ(r);
       return One(s.CacheRead(block, index, scope));
     }},
    {"cache_write",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const int index = r.Small(1);
       const std::string scope = r.Text(2);
       TF_READ(r);
       return One(s.CacheWrite(block, index, scope));
     }},
    {"reindex",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const auto [read, index] = r.Buffer(1);
       TF_READ(r);
       return One(s.Reindex(block, read, index));
     }},
    {"set_scope",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const int index = r.Small(1);
       const std::string scope = r.Text(2);
       TF_READ(r);
       return None(s.SetScope(block, index, scope));
     }},
    {"storage_align",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const int index = r.Small(1), axis = r.Small(2), factor = r.Small(3),
                 offset = r.Small(4);
       TF_READ(r);
       return None(s.StorageAlign(block, index, axis, factor, offset));
     }},
    {"transform_layout",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const auto [read, index] = r.Buffer(1);
       const std::string map = r.Text(2);
       r.MustBeNone(3);
       TF_READ(r);
       return None(s.TransformLayout(block, read, index, map));
     }},
    {"decompose_reduction",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const LoopRv loop = r.Loop(1);
       TF_READ(r);
       return One(s.DecomposeReduction(block, loop));
     }},
    {"rfactor",
     [](S& s, R& r) -> Ids {
       const LoopRv loop = r.Loop(0);
       const int axis = r.Small(1);
       TF_READ(r);
       return One(s.Rfactor(loop, axis));
     }},
    {"skip_zeros",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       TF_READ(r);
       return None(s.SkipZeros(block));
     }},
    {"winograd",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const int tile = r.Small(1);
       TF_READ(r);
       return Many(s.Winograd(block, tile));
     }},
    {"online_softmax",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const int64_t chunk = r.Int(1);
       const int64_t lanes = r.Int(2);
       TF_READ(r);
       return Many(s.OnlineSoftmax(block, chunk, lanes));
     }},
    {"pad_einsum",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       std::vector<int64_t> padding = r.Ints(1);
       TF_READ(r);
       return None(s.PadEinsum(block, std::move(padding)));
     }},
    {"blockize",
     [](S& s, R& r) -> Ids {
       const LoopRv loop = r.Loop(0);
       TF_READ(r);
       return One(s.Blockize(loop));
     }},
    {"tensorize",
     [](S& s, R& r) -> Ids {
       const BlockOrLoop where = r.Where(0);
       const std::string intrinsic = r.Text(1);
       TF_READ(r);
       return None(s.Tensorize(where, intrinsic));
     }},
    {"call_library",
     [](S& s, R& r) -> Ids {
       const BlockRv block = r.Block(0);
       const std::string kernel = r.Text(1);
       TF_READ(r);
       return None(s.CallLibrary(block, kernel));
     }},
    {"annotate",
     [](S& s, R& r) -> Ids {
       const BlockOrLoop where = r.Where(0);
       const std::string key = r.Text(1);
       const AnnValue value = r.Annotation(2);
       TF_READ(r);
       return None(s.Annotate(where, key, value));
     }},
    {"unannotate",
     [](S& s, R& r) -> Ids {
       const BlockOrLoop where = r.Where(0);
       const std::string key = r.Text(1);
       TF_READ(r);
       return None(s.Unannotate(where, key));
     }},
    {"enter_postproc", [](S& s, R&) -> Ids { return None(s.EnterPostproc()); }},
};

#undef TF_READ

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

absl::StatusOr<Schedule> Replay(const Trace& trace, ir::IRModule module,
                                uint64_t seed) {
  PartialReplay replay(std::move(module), seed);
  TF_RETURN_IF_ERROR(replay.Advance(trace, trace.instructions.size()));
  return std::move(replay).Take();
}

}  // namespace tilefarm::schedule

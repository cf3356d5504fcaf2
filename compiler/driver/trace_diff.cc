#include "compiler/driver/trace_diff.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::driver {
namespace {

using schedule::Arg;
using schedule::Instruction;
using schedule::Rv;
using schedule::RvKind;
using schedule::Trace;

std::string TextOf(const ir::Attr& value) {
  if (const std::string* text = value.AsString()) return *text;
  if (const auto number = value.AsInt()) return absl::StrCat(*number);
  if (const auto* list = value.AsList()) {
    return absl::StrCat(
        "[",
        absl::StrJoin(*list, ", ",
                      [](std::string* out, const ir::Attr& one) {
                        absl::StrAppend(out, TextOf(one));
                      }),
        "]");
  }
  return "undecided";
}

// The instruction with nothing but what sketches share.
std::string WithoutDecision(Instruction instruction) {
  instruction.decision = ir::Attr();
  std::string text = Trace{{std::move(instruction)}}.Print();
  return std::string(absl::StripTrailingAsciiWhitespace(text));
}

// The first instruction that the traces do not share; empty if there is none in
// one of them.
DecisionDiff FirstOther(const Trace& a, const Trace& b) {
  const auto text = [](const Trace& trace, size_t i) {
    return i < trace.instructions.size()
               ? WithoutDecision(trace.instructions[i])
               : std::string();
  };
  size_t i = 0;
  const size_t size = std::max(a.instructions.size(), b.instructions.size());
  while (i < size && text(a, i) == text(b, i)) ++i;
  return {absl::StrCat("instruction ", i + 1), text(a, i), text(b, i)};
}

bool IsSameSketch(const Trace& a, const Trace& b) {
  return std::equal(a.instructions.begin(), a.instructions.end(),
                    b.instructions.begin(), b.instructions.end(),
                    [](const Instruction& x, const Instruction& y) {
                      return WithoutDecision(x) == WithoutDecision(y);
                    });
}

const Arg* ArgumentOf(const Instruction& instruction, std::string_view name) {
  for (const auto& [key, argument] : instruction.args) {
    if (key == name) return &argument;
  }
  return nullptr;
}

std::optional<Rv> VariableOf(const Arg* argument, RvKind kind) {
  if (argument == nullptr) return std::nullopt;
  const Rv* rv = std::get_if<Rv>(&argument->value);
  return rv != nullptr && rv->kind == kind ? std::optional(*rv) : std::nullopt;
}

// Names the decisions of a trace while it is replayed.
class Namer {
 public:
  Namer(ir::PrimFuncPtr function, const Trace& trace)
      : trace_(trace), replay_(ir::IRModule{{std::move(function)}}) {}

  // Of instruction `at`, a sample; to be called in ascending order.
  std::string NameOf(size_t at) {
    if (works_) works_ = replay_.Advance(trace_, at).ok();
    const Instruction& sample = trace_.instructions[at];
    if (sample.primitive == "sample_compute_location") {
      return absl::StrCat("place of ", Block(ArgumentOf(sample, "block")));
    }
    if (sample.primitive == "sample_categorical") return UseOf(sample);
    const Arg* loop = ArgumentOf(sample, "loop");
    return absl::StrCat("tiles of ", Loop(loop));
  }

 private:
  // What the sampled value is for: the first instruction that has it.
  std::string UseOf(const Instruction& sample) const {
    for (const Instruction& user : trace_.instructions) {
      for (const auto& [key, argument] : user.args) {
        const auto used = VariableOf(&argument, RvKind::kExpr);
        if (!used || sample.outputs.empty() || !(*used == sample.outputs[0])) {
          continue;
        }
        if (user.primitive != "annotate") {
          return absl::StrCat(key, " of ", user.primitive);
        }
        const Arg* name = ArgumentOf(user, "ann_key");
        const auto* text =
            name == nullptr ? nullptr : std::get_if<ir::Attr>(&name->value);
        return text == nullptr ? user.primitive : TextOf(*text);
      }
    }
    return "choice without use";
  }

  std::string Block(const Arg* argument) const {
    const auto rv = VariableOf(argument, RvKind::kBlock);
    if (!rv) return "a block";
    const auto block = Get<schedule::BlockRv>(*rv);
    return block == nullptr ? absl::StrCat("block b", rv->id)
                            : absl::StrCat("block ", block->name);
  }

  std::string Loop(const Arg* argument) const {
    const auto rv = VariableOf(argument, RvKind::kLoop);
    if (!rv) return "a loop";
    const auto loop = Get<schedule::LoopRv>(*rv);
    std::string text = loop == nullptr ? absl::StrCat("loop l", rv->id)
                                       : absl::StrCat("loop ", loop->var->name);
    for (const Instruction& instruction : trace_.instructions) {
      if (instruction.primitive == "get_loops" &&
          std::find(instruction.outputs.begin(), instruction.outputs.end(),
                    *rv) != instruction.outputs.end()) {
        absl::StrAppend(&text, " of ", Block(ArgumentOf(instruction, "block")));
        break;
      }
    }
    return text;
  }

  // Null: the trace has not come so far.
  template <typename Variable>
  auto Get(const Rv& rv) const -> std::decay_t<
      decltype(*std::declval<schedule::Schedule>().Get(Variable{}))> {
    const std::vector<int>& ids = replay_.ids();
    const auto at = static_cast<size_t>(rv.id);
    if (!works_ || at >= ids.size() || ids[at] < 0) return nullptr;
    auto found = replay_.schedule().Get(Variable{ids[at]});
    return found.ok() ? *found : nullptr;
  }

  const Trace& trace_;
  schedule::PartialReplay replay_;
  bool works_ = true;
};

// The constants of a list; a list without variables may be one constant.
std::vector<ir::Attr> ConstantsOf(const Arg* argument) {
  if (argument == nullptr) return {};
  if (const auto* constant = std::get_if<ir::Attr>(&argument->value)) {
    const auto* list = constant->AsList();
    return list == nullptr ? std::vector<ir::Attr>() : *list;
  }
  std::vector<ir::Attr> constants;
  if (const auto* list = std::get_if<schedule::ArgList>(&argument->value)) {
    for (const Arg& one : *list) {
      const auto* constant = std::get_if<ir::Attr>(&one.value);
      if (constant == nullptr) return {};
      constants.push_back(*constant);
    }
  }
  return constants;
}

// A categorical decision is the number of a candidate.
std::string DecisionOf(const Instruction& sample) {
  if (sample.primitive == "sample_categorical") {
    const std::vector<ir::Attr> candidates =
        ConstantsOf(ArgumentOf(sample, "candidates"));
    const auto at = sample.decision.AsInt();
    if (at && *at >= 0 && *at < static_cast<int64_t>(candidates.size())) {
      return TextOf(candidates[static_cast<size_t>(*at)]);
    }
  }
  return TextOf(sample.decision);
}

// How often each primitive and annotation occurs; lookups do not count.
std::map<std::string, int> CountsOf(const Trace& trace) {
  std::map<std::string, int> counts;
  for (const Instruction& instruction : trace.instructions) {
    std::string name = instruction.primitive;
    if (name.rfind("get_", 0) == 0 || instruction.is_sample()) continue;
    if (name == "annotate") {
      const Arg* key = ArgumentOf(instruction, "ann_key");
      const auto* text =
          key == nullptr ? nullptr : std::get_if<ir::Attr>(&key->value);
      if (text != nullptr) absl::StrAppend(&name, " ", TextOf(*text));
    }
    ++counts[name];
  }
  return counts;
}

}  // namespace

absl::StatusOr<TraceDiff> CompareTraces(const std::string& program,
                                        const std::string& first,
                                        const std::string& second) {
  TF_ASSIGN_OR_RETURN(ir::PrimFuncPtr function, ir::ParseFunction(program));
  TF_ASSIGN_OR_RETURN(const Trace a, Trace::Parse(first));
  TF_ASSIGN_OR_RETURN(const Trace b, Trace::Parse(second));
  TraceDiff diff;
  diff.same_sketch = IsSameSketch(a, b);
  if (!diff.same_sketch) {
    const auto counts = CountsOf(a), others = CountsOf(b);
    std::map<std::string, std::pair<int, int>> both;
    for (const auto& [name, count] : counts) both[name].first = count;
    for (const auto& [name, count] : others) both[name].second = count;
    for (const auto& [name, pair] : both) {
      if (pair.first == pair.second) continue;
      diff.decisions.push_back(
          {name, absl::StrCat(pair.first), absl::StrCat(pair.second)});
    }
    // Sketches may differ in the order or the arguments alone, such as the loop
    // at which a block is computed.
    if (diff.decisions.empty()) diff.decisions.push_back(FirstOther(a, b));
    return diff;
  }
  Namer namer(std::move(function), a);
  for (size_t i = 0; i < a.instructions.size(); ++i) {
    if (!a.instructions[i].is_sample()) continue;
    std::string mine = DecisionOf(a.instructions[i]);
    std::string other = DecisionOf(b.instructions[i]);
    if (mine == other) continue;
    diff.decisions.push_back(
        {namer.NameOf(i), std::move(mine), std::move(other)});
  }
  return diff;
}

}  // namespace tilefarm::driver

// Reads the arguments of a trace's instruction, for replay.cc and for running
// sketches on numbers (cost_model/skeleton/sketch_plan.cc).
#ifndef TILEFARM_COMPILER_SCHEDULE_INSTRUCTION_READER_H_
#define TILEFARM_COMPILER_SCHEDULE_INSTRUCTION_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::schedule {

// The arguments of one instruction, with variables renamed from the trace's ids
// to the schedule's. The status keeps the first error.
class InstructionReader {
 public:
  InstructionReader(const Instruction& instruction, const std::vector<int>& ids)
      : instruction_(instruction), ids_(ids) {}

  const absl::Status& status() const { return status_; }

  BlockRv Block(size_t i) { return {Id(i, RvKind::kBlock)}; }
  LoopRv Loop(size_t i) { return {Id(i, RvKind::kLoop)}; }
  BlockOrLoop Where(size_t i) {
    const Arg* arg = At(i);
    const Rv* rv = arg == nullptr ? nullptr : std::get_if<Rv>(&arg->value);
    if (rv != nullptr && rv->kind == RvKind::kBlock) return Block(i);
    return Loop(i);
  }
  std::vector<LoopRv> Loops(size_t i) {
    return List<LoopRv>(i, RvKind::kLoop, "is not a list of loops");
  }
  std::vector<BlockRv> Blocks(size_t i) {
    return List<BlockRv>(i, RvKind::kBlock, "is not a list of blocks");
  }
  std::vector<Factor> Factors(size_t i) {
    std::vector<Factor> out;
    const Arg* arg = At(i);
    const auto* list =
        arg == nullptr ? nullptr : std::get_if<ArgList>(&arg->value);
    if (list == nullptr) {
      for (const ir::Attr& attr : ConstList(i))
        out.push_back(ToFactor(i, attr));
      return out;
    }
    for (const Arg& item : *list) {
      if (const Rv* rv = std::get_if<Rv>(&item.value)) {
        if (rv->kind != RvKind::kExpr) Fail(i, "is not a list of factors");
        out.push_back(ExprRv{Renamed(i, *rv)});
      } else if (const auto* attr = std::get_if<ir::Attr>(&item.value)) {
        out.push_back(ToFactor(i, *attr));
      } else {
        Fail(i, "is not a list of factors");
      }
    }
    return out;
  }
  Number ToNumber(size_t i) {
    const Arg* arg = At(i);
    const Rv* rv = arg == nullptr ? nullptr : std::get_if<Rv>(&arg->value);
    if (rv == nullptr || rv->kind != RvKind::kExpr) return Int(i);
    return ExprRv{Renamed(i, *rv)};
  }
  int64_t Int(size_t i) {
    const ir::Attr* attr = ConstAt(i);
    if (attr == nullptr) return 0;
    const auto value = attr->AsInt();
    if (!value) Fail(i, "is not an integer");
    return value.value_or(0);
  }
  // For parameters of type int.
  int Small(size_t i) {
    const int64_t value = Int(i);
    if (value < INT32_MIN || value > INT32_MAX) Fail(i, "is out of range");
    return static_cast<int>(value);
  }
  bool Bool(size_t i) { return Int(i) != 0; }
  std::string Text(size_t i) {
    const ir::Attr* attr = ConstAt(i);
    if (attr == nullptr) return "";
    const std::string* text = attr->AsString();
    if (text == nullptr) {
      Fail(i, "is not a string");
      return "";
    }
    return *text;
  }
  std::vector<int64_t> Ints(size_t i) {
    const auto values = ToInts(ConstList(i));
    if (!values) Fail(i, "is not a list of integers");
    return values.value_or(std::vector<int64_t>());
  }
  std::vector<double> Floats(size_t i) {
    std::vector<double> out;
    for (const ir::Attr& attr : ConstList(i)) {
      if (const auto* number = std::get_if<double>(&attr.value)) {
        out.push_back(*number);
      } else if (const auto value = attr.AsInt()) {
        out.push_back(static_cast<double>(*value));
      } else {
        Fail(i, "is not a list of numbers");
      }
    }
    return out;
  }
  // Reads ("read", 0) as {true, 0}.
  std::pair<bool, int> Buffer(size_t i) {
    const ir::AttrList list = ConstList(i);
    if (list.size() == 2 && list[0].AsString() != nullptr) {
      const std::string& side = *list[0].AsString();
      const auto index = list[1].AsInt();
      if ((side == "read" || side == "write") && index && *index >= 0 &&
          *index <= INT32_MAX) {
        return {side == "read", static_cast<int>(*index)};
      }
    }
    Fail(i, "is not (\"read\" or \"write\", index)");
    return {true, 0};
  }
  // For an option of TVM that is not supported.
  void MustBeNone(size_t i) {
    const ir::Attr* attr = ConstAt(i);
    if (attr != nullptr && *attr != ir::Attr()) Fail(i, "must be None");
  }
  AnnValue Annotation(size_t i) {
    const Arg* arg = At(i);
    if (arg == nullptr) return ir::Attr();
    if (const Rv* rv = std::get_if<Rv>(&arg->value)) {
      if (rv->kind != RvKind::kExpr) Fail(i, "is not a value");
      return ExprRv{Renamed(i, *rv)};
    }
    const ir::Attr* attr = ConstAt(i);
    return attr == nullptr ? ir::Attr() : *attr;
  }
  std::optional<int64_t> IntDecision() {
    if (instruction_.decision == ir::Attr()) return std::nullopt;
    const auto value = instruction_.decision.AsInt();
    if (!value) FailText("its decision is not an integer");
    return value;
  }
  std::optional<std::vector<int64_t>> ListDecision() {
    if (instruction_.decision == ir::Attr()) return std::nullopt;
    const ir::AttrList* list = instruction_.decision.AsList();
    auto values = list == nullptr ? std::nullopt : ToInts(*list);
    if (!values) FailText("its decision is not a list of integers");
    return values;
  }

 private:
  template <typename T>
  std::vector<T> List(size_t i, RvKind kind, std::string_view error) {
    std::vector<T> out;
    const Arg* arg = At(i);
    // The parser reads an empty list as a constant.
    if (arg != nullptr && std::get_if<ir::Attr>(&arg->value) != nullptr &&
        ConstList(i).empty()) {
      return out;
    }
    const auto* list =
        arg == nullptr ? nullptr : std::get_if<ArgList>(&arg->value);
    if (list == nullptr) {
      Fail(i, error);
      return out;
    }
    for (const Arg& item : *list) {
      const Rv* rv = std::get_if<Rv>(&item.value);
      if (rv == nullptr || rv->kind != kind) {
        Fail(i, error);
        return out;
      }
      out.push_back({Renamed(i, *rv)});
    }
    return out;
  }
  const Arg* At(size_t i) {
    if (i < instruction_.args.size()) return &instruction_.args[i].second;
    FailText("arguments are missing");
    return nullptr;
  }
  const ir::Attr* ConstAt(size_t i) {
    const Arg* arg = At(i);
    if (arg == nullptr) return nullptr;
    const auto* attr = std::get_if<ir::Attr>(&arg->value);
    if (attr == nullptr) Fail(i, "is not a constant");
    return attr;
  }
  ir::AttrList ConstList(size_t i) {
    const ir::Attr* attr = ConstAt(i);
    if (attr == nullptr) return {};
    const ir::AttrList* list = attr->AsList();
    if (list == nullptr) {
      Fail(i, "is not a list");
      return {};
    }
    return *list;
  }
  static std::optional<std::vector<int64_t>> ToInts(const ir::AttrList& list) {
    std::vector<int64_t> out;
    for (const ir::Attr& attr : list) {
      const auto value = attr.AsInt();
      if (!value) return std::nullopt;
      out.push_back(*value);
    }
    return out;
  }
  Factor ToFactor(size_t i, const ir::Attr& attr) {
    if (attr == ir::Attr()) return std::nullopt;
    const auto value = attr.AsInt();
    if (!value) Fail(i, "is not a list of factors");
    return value.value_or(0);
  }
  int Id(size_t i, RvKind kind) {
    const Arg* arg = At(i);
    if (arg == nullptr) return -1;
    const Rv* rv = std::get_if<Rv>(&arg->value);
    if (rv == nullptr || rv->kind != kind) {
      Fail(i, kind == RvKind::kBlock ? "is not a block" : "is not a loop");
      return -1;
    }
    return Renamed(i, *rv);
  }
  int Renamed(size_t i, const Rv& rv) {
    if (rv.id >= 0 && rv.id < static_cast<int>(ids_.size()) &&
        ids_[rv.id] >= 0) {
      return ids_[rv.id];
    }
    Fail(i, "uses a variable that no instruction before it made");
    return -1;
  }
  void Fail(size_t i, std::string_view what) {
    FailText(absl::StrCat("argument \"", instruction_.args[i].first, "\" ",
                          std::string(what)));
  }
  void FailText(std::string_view what) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat(instruction_.primitive, ": ", std::string(what)));
  }

  const Instruction& instruction_;
  const std::vector<int>& ids_;
  absl::Status status_;
};

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_INSTRUCTION_READER_H_

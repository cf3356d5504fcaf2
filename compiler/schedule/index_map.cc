#include "compiler/schedule/index_map.h"

#include <cctype>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/even_domain.h"

namespace tilefarm::schedule {
namespace {

constexpr int kMaxNesting = 64;

// Recursive descent over the text.
class MapParser {
 public:
  explicit MapParser(std::string_view text) : text_(text) {}

  absl::Status Run(std::vector<ir::Var>* inputs,
                   std::vector<ir::Expr>* outputs) {
    const bool wrapped = Take("T.index_map(");
    if (!Take("lambda")) return Error("expected `lambda`");
    if (!Take(":")) {
      do {
        const std::string name = Name();
        if (name.empty()) return Error("expected a parameter name");
        for (const ir::Var& input : *inputs) {
          if (input->name == name) return Error("the parameter occurs twice");
        }
        inputs->push_back(ir::MakeVar(name));
      } while (Take(","));
      if (!Take(":")) return Error("expected `:`");
    }
    inputs_ = inputs;
    TF_RETURN_IF_ERROR(Body(outputs));
    if (wrapped && !Take(")")) return Error("expected `)`");
    SkipSpace();
    if (at_ != text_.size()) return Error("unexpected text after the map");
    return absl::OkStatus();
  }

 private:
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("index map, column ", at_ + 1, ": ", std::string(what),
                     " in `", std::string(text_), "`"));
  }

  void SkipSpace() {
    while (at_ < text_.size() &&
           std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    }
  }

  bool Take(std::string_view token) {
    SkipSpace();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  std::string Name() {
    SkipSpace();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
            text_[at_] == '_')) {
      ++at_;
    }
    std::string name(text_.substr(start, at_ - start));
    if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0]))) {
      at_ = start;
      return "";
    }
    return name;
  }

  // A tuple, a list, or one expression. `(i + j) * 2` begins like a tuple: a
  // bracket is a tuple if the text ends after it.
  absl::Status Body(std::vector<ir::Expr>* outputs) {
    const size_t start = at_;
    for (const auto& [open, close] :
         {std::pair<const char*, const char*>{"(", ")"}, {"[", "]"}}) {
      at_ = start;
      if (!Take(open)) continue;
      std::vector<ir::Expr> list;
      bool ok = true;
      while (ok && !Take(close)) {
        auto item = Sum(0);
        if (!item.ok()) return item.status();
        list.push_back(*std::move(item));
        if (Take(",")) continue;
        ok = Take(close);
        break;
      }
      if (!ok) return Error("expected `,` or a closing bracket");
      SkipSpace();
      const bool ends = at_ == text_.size() || text_[at_] == ')';
      if (ends) {
        if (list.empty()) return Error("the map has no outputs");
        *outputs = std::move(list);
        return absl::OkStatus();
      }
    }
    at_ = start;
    auto single = Sum(0);
    if (!single.ok()) return single.status();
    outputs->push_back(*std::move(single));
    return absl::OkStatus();
  }

  absl::StatusOr<ir::Expr> Sum(int depth) {
    TF_ASSIGN_OR_RETURN(ir::Expr left, Product(depth));
    while (true) {
      if (Take("+")) {
        TF_ASSIGN_OR_RETURN(ir::Expr right, Product(depth));
        left = left + right;
      } else if (Take("-")) {
        TF_ASSIGN_OR_RETURN(ir::Expr right, Product(depth));
        left = left - right;
      } else {
        return left;
      }
    }
  }

  absl::StatusOr<ir::Expr> Product(int depth) {
    TF_ASSIGN_OR_RETURN(ir::Expr left, Factor(depth));
    while (true) {
      if (Take("//")) {
        TF_ASSIGN_OR_RETURN(ir::Expr right, Divisor(depth));
        left = ir::FloorDiv(left, right);
      } else if (Take("%")) {
        TF_ASSIGN_OR_RETURN(ir::Expr right, Divisor(depth));
        left = ir::FloorMod(left, right);
      } else if (Take("*")) {
        TF_ASSIGN_OR_RETURN(ir::Expr right, Factor(depth));
        left = left * right;
      } else {
        return left;
      }
    }
  }

  absl::StatusOr<ir::Expr> Divisor(int depth) {
    TF_ASSIGN_OR_RETURN(ir::Expr divisor, Factor(depth));
    if (ir::AsInt(divisor).value_or(0) <= 0) {
      return Error("the divisor must be a positive constant");
    }
    return divisor;
  }

  absl::StatusOr<ir::Expr> Factor(int depth) {
    if (depth > kMaxNesting) return Error("too deeply nested");
    if (Take("(")) {
      TF_ASSIGN_OR_RETURN(ir::Expr inner, Sum(depth + 1));
      if (!Take(")")) return Error("expected `)`");
      return inner;
    }
    if (Take("-")) {
      TF_ASSIGN_OR_RETURN(ir::Expr operand, Factor(depth + 1));
      return ir::IntConst(0) - operand;
    }
    for (const char* literal : {"T.int64(", "T.int32("}) {
      if (!Take(literal)) continue;
      TF_ASSIGN_OR_RETURN(ir::Expr inner, Sum(depth + 1));
      if (!Take(")")) return Error("expected `)`");
      return inner;
    }
    SkipSpace();
    if (at_ < text_.size() &&
        std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      int64_t value = 0;
      while (at_ < text_.size() &&
             std::isdigit(static_cast<unsigned char>(text_[at_]))) {
        value = value * 10 + (text_[at_] - '0');
        if (value > (int64_t{1} << 40)) return Error("the number is too large");
        ++at_;
      }
      return ir::IntConst(value);
    }
    const size_t start = at_;
    const std::string name = Name();
    for (const ir::Var& input : *inputs_) {
      if (input->name == name) return ir::Expr(input);
    }
    at_ = start;
    return Error(name.empty() ? "expected an index expression"
                              : "unknown name");
  }

  std::string_view text_;
  size_t at_ = 0;
  const std::vector<ir::Var>* inputs_ = nullptr;
};

}  // namespace

absl::StatusOr<IndexMap> IndexMap::Parse(std::string_view text) {
  IndexMap map;
  TF_RETURN_IF_ERROR(MapParser(text).Run(&map.inputs_, &map.outputs_));
  return map;
}

std::vector<ir::Expr> IndexMap::Apply(
    const std::vector<ir::Expr>& indices) const {
  ir::VarMap vars;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    vars[inputs_[i].get()] = indices[i];
  }
  std::vector<ir::Expr> result;
  for (const ir::Expr& output : outputs_) {
    result.push_back(ir::Substitute(output, vars));
  }
  return result;
}

absl::StatusOr<std::vector<int64_t>> IndexMap::OutputShape(
    const std::vector<int64_t>& shape) const {
  absl::StatusOr<std::vector<int64_t>> result = BijectiveShape(shape);
  if (result.ok()) return result;
  arith::VarRanges domain;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    domain.emplace_back(inputs_[i],
                        ir::Range{ir::IntConst(0), ir::IntConst(shape[i])});
  }
  const auto even = EvenDomain(outputs_, domain);
  if (!even) return result;
  std::vector<int64_t> larger;
  for (const auto& [var, range] : *even) {
    larger.push_back(ir::AsInt(range.extent).value_or(1));
  }
  const absl::StatusOr<std::vector<int64_t>> padded = BijectiveShape(larger);
  return padded.ok() ? padded : result;
}

absl::StatusOr<std::vector<int64_t>> IndexMap::BijectiveShape(
    const std::vector<int64_t>& shape) const {
  arith::Analyzer analyzer;
  arith::VarRanges ranges;
  int64_t elements = 1;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    analyzer.Bind(inputs_[i], 0, shape[i]);
    ranges.emplace_back(inputs_[i],
                        ir::Range{ir::IntConst(0), ir::IntConst(shape[i])});
    elements *= shape[i];
  }
  auto map = arith::DetectIterMap(outputs_, ranges, nullptr,
                                  arith::IterMapLevel::kBijective, analyzer);
  if (!map.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the index map is not one to one on the buffer: ",
                     std::string(map.status().message())));
  }
  std::vector<int64_t> result;
  int64_t new_elements = 1;
  for (const ir::Expr& output : outputs_) {
    const arith::ConstBound bounds = analyzer.Bounds(output);
    if (!bounds.is_bounded() || bounds.min != 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the index ", ir::ToString(output), " does not start at 0"));
    }
    result.push_back(bounds.max + 1);
    // Cannot overflow: the loop stops once the product exceeds the buffer.
    if (result.back() > elements || new_elements > elements) break;
    new_elements *= result.back();
  }
  if (new_elements != elements || result.size() != outputs_.size()) {
    return absl::FailedPreconditionError(
        "the index map would leave gaps (padding) in the new buffer");
  }
  return result;
}

}  // namespace tilefarm::schedule

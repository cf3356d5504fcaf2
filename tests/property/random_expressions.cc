#include "tests/property/random_expressions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilefarm::property {

bool IsFloat(const std::string& dtype) {
  return dtype[0] == 'f' || dtype == "bfloat16";
}

double ExactMagnitude(const std::string& dtype) {
  if (dtype == "float16") return 400;
  return dtype == "bfloat16" ? 100 : 1e5;
}

// --- Declarations ---
std::string RandomExpressions::RandomType() {
  static const char* const kTypes[] = {
      "float32", "float32", "float32", "float32", "float32",
      "float64", "float16", "int32",   "int32",   "int64",
      "int8",    "uint8",   "bool"};
  return kTypes[rng_.Below(std::size(kTypes))];
}

int64_t RandomExpressions::RandomExtent() {
  static constexpr int64_t kExtents[] = {1, 1, 2, 3, 4,  4,  5,
                                         6, 7, 8, 8, 11, 13, 16};
  return kExtents[rng_.Below(std::size(kExtents))];
}

void RandomExpressions::AddTensor(std::string name, bool parameter,
                                  bool input) {
  TensorDecl t;
  t.name = std::move(name);
  t.dtype =
      tensors_.empty() || rng_.Chance(0.4) ? RandomType() : tensors_[0].dtype;
  t.parameter = parameter;
  t.input = input;
  if (!tensors_.empty() && rng_.Chance(0.45)) {
    t.shape = tensors_[rng_.Below(tensors_.size())].shape;
  } else {
    static constexpr int kRanks[] = {0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5};
    int64_t elements = 1;
    for (int d = kRanks[rng_.Below(std::size(kRanks))]; d > 0; --d) {
      const int64_t extent = RandomExtent();
      t.shape.push_back(elements * extent > kMaxIterations ? 1 : extent);
      elements *= t.shape.back();
    }
  }
  tensors_.push_back(std::move(t));
}

std::vector<int> RandomExpressions::ParameterIndices() const {
  std::vector<int> result;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].parameter) result.push_back(static_cast<int>(t));
  }
  return result;
}

std::string RandomExpressions::ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "),
                      shape.size() == 1 ? ",)" : ")");
}

std::string RandomExpressions::Header() const {
  std::vector<std::string> params;
  std::string allocs;
  for (const TensorDecl& t : tensors_) {
    if (t.parameter) {
      params.push_back(absl::StrCat(t.name, ": T.Buffer(", ShapeText(t.shape),
                                    ", \"", t.dtype, "\")"));
    } else {
      absl::StrAppend(&allocs, "    ", t.name, " = T.alloc_buffer(",
                      ShapeText(t.shape), ", \"", t.dtype, "\")\n");
    }
  }
  return absl::StrCat("@T.prim_func\ndef main(", absl::StrJoin(params, ", "),
                      "):\n", allocs);
}

// --- Text ---
void RandomExpressions::Line(const std::string& text) {
  body_.append(4 * depth_, ' ');
  absl::StrAppend(&body_, text, "\n");
}
std::string RandomExpressions::Fresh(const char* prefix) {
  return absl::StrCat(prefix, next_name_++);
}

// --- Index expressions ---
std::string RandomExpressions::Index(int64_t extent, bool plain_only) {
  std::vector<std::string> choices;
  std::vector<std::string> plain;
  for (const IndexVar& v : indices_) {
    if (v.low >= 0 && v.high <= extent) {
      plain.push_back(v.name);
      choices.push_back(v.name);
      choices.push_back(absl::StrCat(extent - 1, " - ", v.name));
      if (v.high < extent) {
        choices.push_back(
            absl::StrCat(v.name, " + ", rng_.Between(1, extent - v.high)));
      }
    }
    if (v.low >= 0 && 2 * (v.high - 1) + 1 < extent) {
      choices.push_back(absl::StrCat(v.name, " * 2"));
      choices.push_back(absl::StrCat(v.name, " * 2 + 1"));
    }
    if (v.low > 0 && v.high - v.low <= extent) {
      choices.push_back(absl::StrCat(v.name, " - ", v.low));
    }
    const int64_t c = rng_.Between(2, 4);
    if (v.low >= 0 && (v.high - 1) / c < extent) {
      choices.push_back(absl::StrCat(v.name, " // ", c));
    }
    choices.push_back(absl::StrCat(v.name, " % ", extent));
    choices.push_back(
        absl::StrCat("(", v.name, " + ", rng_.Between(1, 5), ") % ", extent));
    if (v.low >= 0) {
      choices.push_back(absl::StrCat("T.min(", v.name, ", ", extent - 1, ")"));
    }
    for (const IndexVar& w : indices_) {
      if (&v == &w || v.low < 0 || w.low < 0) continue;
      if ((v.high - 1) * w.high + w.high <= extent) {
        choices.push_back(absl::StrCat(v.name, " * ", w.high, " + ", w.name));
        choices.push_back(choices.back());
      }
      if (v.high + w.high - 1 <= extent) {
        choices.push_back(absl::StrCat(v.name, " + ", w.name));
      }
    }
  }
  if (!plain.empty() && (plain_only || rng_.Chance(0.6))) {
    return plain[rng_.Below(plain.size())];
  }
  if (choices.empty() || rng_.Chance(0.12)) {
    return absl::StrCat(rng_.Below(extent));
  }
  return choices[rng_.Below(choices.size())];
}

std::string RandomExpressions::Access(const TensorDecl& t, bool plain_only) {
  if (t.shape.empty()) return absl::StrCat(t.name, "[()]");
  std::vector<std::string> parts;
  for (const int64_t extent : t.shape) {
    parts.push_back(Index(extent, plain_only));
  }
  // An index that was read from a buffer.
  if (!plain_only && rng_.Chance(0.04)) {
    for (const int r : readable_) {
      const TensorDecl& source = tensors_[r];
      if (source.dtype != "int32" && source.dtype != "int64") continue;
      const size_t d = rng_.Below(parts.size());
      parts[d] =
          absl::StrCat("T.min(T.max(T.Cast(\"int64\", ", Access(source, true),
                       "), 0), ", t.shape[d] - 1, ")");
      break;
    }
  }
  return absl::StrCat(t.name, "[", absl::StrJoin(parts, ", "), "]");
}

// --- Values ---
Value RandomExpressions::Constant(const std::string& dtype) {
  if (dtype == "bool") {
    return {rng_.Chance(0.5) ? "T.bool(True)" : "T.bool(False)", 1};
  }
  if (IsFloat(dtype)) {
    static const char* const kValues[] = {"0.0", "1.0", "2.0", "-1.0", "0.5"};
    return {absl::StrCat("T.", dtype, "(", kValues[rng_.Below(5)], ")"), 2};
  }
  const int64_t low = dtype[0] == 'u' ? 0 : -3;
  return {absl::StrCat("T.", dtype, "(", rng_.Between(low, 5), ")"), 5};
}

const TensorDecl* RandomExpressions::ReadableOf(const std::string& dtype) {
  std::vector<int> fitting;
  for (const int r : readable_) {
    if (tensors_[r].dtype == dtype) fitting.push_back(r);
  }
  if (fitting.empty()) return nullptr;
  return &tensors_[fitting[rng_.Below(fitting.size())]];
}

Value RandomExpressions::Leaf(const std::string& dtype) {
  if (rng_.Chance(0.1)) return Constant(dtype);
  if (rng_.Chance(0.2)) {
    for (const ScalarVar& s : scalars_) {
      if (s.dtype == dtype) return {s.name, s.magnitude, s.exact};
    }
  }
  const TensorDecl* t = ReadableOf(dtype);
  if (t != nullptr && rng_.Chance(0.9)) {
    return {Access(*t), t->magnitude, t->exact};
  }
  if (!indices_.empty() && rng_.Chance(0.3) && dtype != "bool") {
    const IndexVar& v = indices_[rng_.Below(indices_.size())];
    if (v.low >= 0) {
      return {absl::StrCat("T.Cast(\"", dtype, "\", ", v.name, ")"),
              static_cast<double>(v.high)};
    }
  }
  // A cast of an existing element.
  if (!readable_.empty() && rng_.Chance(0.8)) {
    const TensorDecl& other = tensors_[readable_[rng_.Below(readable_.size())]];
    const bool safe = other.exact && other.magnitude < 100 &&
                      (dtype[0] != 'u' || other.dtype[0] == 'u') &&
                      dtype != "bool" && other.dtype != dtype;
    if (safe) {
      return {absl::StrCat("T.Cast(\"", dtype, "\", ", Access(other), ")"),
              other.magnitude};
    }
  }
  return Constant(dtype);
}

std::string RandomExpressions::Condition() {
  if (!indices_.empty() && rng_.Chance(0.7)) {
    const IndexVar& v = indices_[rng_.Below(indices_.size())];
    static const char* const kOps[] = {"<", "<=", ">", ">=", "==", "!="};
    const std::string bound = rng_.Chance(0.25)
                                  ? indices_[rng_.Below(indices_.size())].name
                                  : absl::StrCat(rng_.Between(v.low, v.high));
    std::string text =
        absl::StrCat(v.name, " ", kOps[rng_.Below(6)], " ", bound);
    if (rng_.Chance(0.15)) text = absl::StrCat(v.name, " % 2 == 0");
    if (rng_.Chance(0.15)) {
      return absl::StrCat("T.And(", text, ", ", Condition(), ")");
    }
    if (rng_.Chance(0.1)) {
      return absl::StrCat("T.Or(", text, ", ", Condition(), ")");
    }
    if (rng_.Chance(0.05)) return absl::StrCat("T.Not(", text, ")");
    return text;
  }
  for (int tries = 0; tries < 4; ++tries) {
    const TensorDecl& t = tensors_[readable_[rng_.Below(readable_.size())]];
    if (!t.exact) continue;
    if (t.dtype == "bool") return Access(t);
    return absl::StrCat(Access(t), rng_.Chance(0.5) ? " > " : " <= ", "T.",
                        t.dtype, "(", rng_.Below(2), ")");
  }
  return "T.bool(True)";
}

Value RandomExpressions::Expr(const std::string& dtype, int depth) {
  if (depth <= 0 || rng_.Chance(0.25)) return Leaf(dtype);
  if (dtype == "bool") {
    if (rng_.Chance(0.5)) return Leaf(dtype);
    return {Condition(), 1};
  }
  const Value a = Expr(dtype, depth - 1);
  const bool real = IsFloat(dtype);
  switch (rng_.Below(11)) {
    case 0:
    case 1:
    case 2: {
      const Value b = Expr(dtype, depth - 1);
      const char* op = rng_.Chance(0.7) ? " + " : " - ";
      return {absl::StrCat("(", a.text, op, b.text, ")"),
              a.magnitude + b.magnitude, a.exact && b.exact};
    }
    case 3:
    case 4: {
      const Value b = Leaf(dtype);
      if (a.magnitude * b.magnitude > 1e4) return a;
      return {absl::StrCat("(", a.text, " * ", b.text, ")"),
              a.magnitude * std::max(b.magnitude, 1.0), a.exact && b.exact};
    }
    case 5: {
      const Value b = Expr(dtype, depth - 1);
      return {absl::StrCat(rng_.Chance(0.5) ? "T.max(" : "T.min(", a.text, ", ",
                           b.text, ")"),
              std::max(a.magnitude, b.magnitude), a.exact && b.exact};
    }
    case 6: {
      const Value b = Expr(dtype, depth - 1);
      const bool lazy = rng_.Chance(0.5);
      return {absl::StrCat(lazy ? "T.if_then_else(" : "T.Select(", Condition(),
                           ", ", a.text, ", ", b.text, ")"),
              std::max(a.magnitude, b.magnitude), a.exact && b.exact};
    }
    case 7: {
      // A read that only its guard keeps in bounds.
      const TensorDecl* t = ReadableOf(dtype);
      if (t == nullptr || t->shape.empty() || indices_.empty()) return a;
      const IndexVar& v = indices_[rng_.Below(indices_.size())];
      const int64_t shift = rng_.Between(-3, 3);
      std::vector<std::string> parts;
      for (const int64_t extent : t->shape) parts.push_back(Index(extent));
      const size_t d = rng_.Below(parts.size());
      const std::string at = absl::StrCat(v.name, " + ", shift);
      parts[d] = at;
      return {absl::StrCat("T.if_then_else(T.And(", at, " >= 0, ", at, " < ",
                           t->shape[d], "), ", t->name, "[",
                           absl::StrJoin(parts, ", "), "], ", a.text, ")"),
              std::max(a.magnitude, t->magnitude), a.exact && t->exact};
    }
    case 8:
      if (!real) {
        // Division and remainder, also of negative numbers.
        return {absl::StrCat("(", a.text, rng_.Chance(0.5) ? " // " : " % ",
                             "T.", dtype, "(", rng_.Between(2, 5), "))"),
                a.magnitude, a.exact};
      }
      if (rng_.Chance(0.25)) {
        static const char* const kFunctions[] = {"T.exp", "T.tanh", "T.sigmoid",
                                                 "T.sqrt"};
        const char* function = kFunctions[rng_.Below(4)];
        exact_ = false;
        return {absl::StrCat(function, "(T.min(T.abs(", a.text, "), T.", dtype,
                             "(4.0)))"),
                60, false};
      }
      return {absl::StrCat("T.abs(", a.text, ")"), a.magnitude, a.exact};
    case 9: {
      const std::string name = Fresh("t");
      const Value b = Leaf(dtype);
      if (a.magnitude + b.magnitude > 1e4) return a;
      return {absl::StrCat("T.Let(", name, " + ", b.text, ", where={", name,
                           ": ", a.text, "})"),
              a.magnitude + b.magnitude, a.exact && b.exact};
    }
    default: {
      if (real || dtype[0] == 'u') return a;
      const Value b = Constant(dtype);
      return {absl::StrCat("T.bitwise_and(", a.text, ", ", b.text, ")"),
              a.magnitude + b.magnitude, a.exact};
    }
  }
}

Value RandomExpressions::Bounded(const Value& value, const TensorDecl& t) {
  const double most = ExactMagnitude(t.dtype);
  if (!IsFloat(t.dtype) || value.magnitude <= most) return value;
  return {absl::StrCat("T.max(T.min(", value.text, ", T.", t.dtype,
                       "(50.0)), T.", t.dtype, "(-50.0))"),
          50, value.exact};
}

void RandomExpressions::Wrote(TensorDecl& t, const Value& value) {
  t.magnitude = std::max(t.magnitude, value.magnitude);
  t.exact = t.exact && value.exact;
  if (t.parameter) wrote_output_ = true;
}

TensorDecl& RandomExpressions::Target(bool to_output) {
  std::vector<int> choices;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorDecl& t = tensors_[i];
    if (to_output ? t.parameter && !t.input : !t.input || rng_.Chance(0.15)) {
      choices.push_back(static_cast<int>(i));
    }
  }
  const int chosen = choices[rng_.Below(choices.size())];
  pending_readable_.push_back(chosen);
  return tensors_[chosen];
}

// --- Statements ---
void RandomExpressions::Store(TensorDecl& t, const std::string& at,
                              const Value& value) {
  const Value bounded = Bounded(value, t);
  Line(absl::StrCat(at, " = ", bounded.text));
  Wrote(t, bounded);
}
void RandomExpressions::OpenLoop(int64_t extent, int64_t low) {
  const std::string name = Fresh("i");
  Line(low == 0 ? absl::StrCat("for ", name, " in range(", extent, "):")
                : absl::StrCat("for ", name, " in range(", low, ", ",
                               low + extent, "):"));
  loops_.push_back({name, low, extent});
  ++depth_;
}

std::string RandomExpressions::ElementOf(const TensorDecl& t,
                                         const std::vector<std::string>& at) {
  return at.empty() ? t.name + "[()]"
                    : absl::StrCat(t.name, "[", absl::StrJoin(at, ", "), "]");
}

std::vector<std::string> RandomExpressions::OpenBlock(
    const char* name, const std::vector<Axis>& axes, bool shuffled) {
  loops_.clear();
  indices_.clear();
  std::vector<size_t> order(axes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (shuffled) rng_.Shuffle(order);
  std::vector<std::string> loop_of(axes.size());
  for (const size_t i : order) {
    OpenLoop(axes[i].extent, 0);
    loop_of[i] = loops_.back().name;
  }
  Line(absl::StrCat("with T.block(\"", name, next_block_++, "\"):"));
  ++depth_;
  std::vector<std::string> vars;
  for (size_t i = 0; i < axes.size(); ++i) {
    vars.push_back(Fresh("v"));
    Line(absl::StrCat(vars.back(), " = T.axis.",
                      axes[i].reduces ? "reduce(" : "spatial(", axes[i].extent,
                      ", ", loop_of[i], ")"));
    indices_.push_back({vars.back(), 0, axes[i].extent});
  }
  return vars;
}

void RandomExpressions::CloseBlock() {
  loops_.clear();
  indices_.clear();
  scalars_.clear();
  depth_ = 1;
}

}  // namespace tilefarm::property

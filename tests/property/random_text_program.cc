#include "tests/property/random_text_program.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilefarm::property {
namespace {

constexpr int64_t kInputMagnitude = 3;
// Beyond this, values are brought back before they are stored: float32 counts
// to 2^24, float16 to 2^11 without a gap.
constexpr double kWideMagnitude = 1e5;
constexpr double kHalfMagnitude = 400;
constexpr int64_t kMaxIterations = 400;

struct TensorDecl {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  bool parameter = false;
  bool input = false;
  double magnitude = kInputMagnitude;
  bool exact = true;
};

// An int64 scalar that is in scope: `low <= name < high`.
struct IndexVar {
  std::string name;
  int64_t low = 0, high = 1;
};

// A scalar of any dtype in scope, made by a let.
struct ScalarVar {
  std::string name;
  std::string dtype;
  double magnitude = 0;
  bool exact = true;
};

struct Value {
  std::string text;
  double magnitude = 0;
  bool exact = true;
};

bool IsFloat(const std::string& dtype) { return dtype[0] == 'f'; }

class Generator {
 public:
  explicit Generator(Rng& rng) : rng_(rng) {}

  TextProgram Make() {
    const int inputs = static_cast<int>(rng_.Between(1, 3));
    for (int i = 0; i < inputs; ++i) {
      AddTensor(absl::StrCat("A", i), /*parameter=*/true, /*input=*/true);
    }
    const int outputs = static_cast<int>(rng_.Between(1, 2));
    for (int i = 0; i < outputs; ++i) {
      AddTensor(absl::StrCat("O", i), /*parameter=*/true, /*input=*/false);
    }
    const int temporaries = static_cast<int>(rng_.Below(4));
    for (int i = 0; i < temporaries; ++i) {
      AddTensor(absl::StrCat("W", i), /*parameter=*/false, /*input=*/false);
    }
    depth_ = 1;
    // Most temporaries get their elements before anything reads them.
    std::vector<int> unfilled;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (!tensors_[t].parameter && rng_.Chance(0.85)) {
        unfilled.push_back(static_cast<int>(t));
      }
    }
    readable_ = ParameterIndices();
    const int nests = static_cast<int>(rng_.Between(1, 4));
    // Half of the programs are mostly of the kind that operators are made of:
    // primitives that move blocks refuse most of the others.
    const double regular = rng_.Chance(0.5) ? 0.85 : 0.0;
    for (int i = 0; i < nests; ++i) {
      if (rng_.Chance(regular)) {
        RegularNest(unfilled);
      } else if (!unfilled.empty() && rng_.Chance(0.8)) {
        FillNest(unfilled.back());
        readable_.push_back(unfilled.back());
        unfilled.pop_back();
      } else {
        Nest();
      }
    }
    // Something must come out.
    if (!wrote_output_ && rng_.Chance(regular)) {
      unfilled.clear();
      RegularNest(unfilled);
    } else if (!wrote_output_ || rng_.Chance(0.5)) {
      Nest(/*to_output=*/true);
    }
    return {Header() + body_, exact_};
  }

 private:
  // --- Declarations ---
  std::string RandomType() {
    static const char* const kTypes[] = {
        "float32", "float32", "float32", "float32", "float32",
        "float64", "float16", "int32",   "int32",   "int64",
        "int8",    "uint8",   "bool"};
    return kTypes[rng_.Below(std::size(kTypes))];
  }

  int64_t RandomExtent() {
    static constexpr int64_t kExtents[] = {1, 1, 2, 3, 4,  4,  5,
                                           6, 7, 8, 8, 11, 13, 16};
    return kExtents[rng_.Below(std::size(kExtents))];
  }

  void AddTensor(std::string name, bool parameter, bool input) {
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

  std::vector<int> ParameterIndices() const {
    std::vector<int> result;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t].parameter) result.push_back(static_cast<int>(t));
    }
    return result;
  }

  static std::string ShapeText(const std::vector<int64_t>& shape) {
    return absl::StrCat("(", absl::StrJoin(shape, ", "),
                        shape.size() == 1 ? ",)" : ")");
  }

  std::string Header() const {
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
  void Line(const std::string& text) {
    body_.append(4 * depth_, ' ');
    absl::StrAppend(&body_, text, "\n");
  }
  std::string Fresh(const char* prefix) {
    return absl::StrCat(prefix, next_name_++);
  }

  // --- Index expressions ---
  // One index within [0, extent).
  std::string Index(int64_t extent, bool plain_only = false) {
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
        choices.push_back(
            absl::StrCat("T.min(", v.name, ", ", extent - 1, ")"));
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

  std::string Access(const TensorDecl& t, bool plain_only = false) {
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
  Value Constant(const std::string& dtype) {
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

  const TensorDecl* ReadableOf(const std::string& dtype) {
    std::vector<int> fitting;
    for (const int r : readable_) {
      if (tensors_[r].dtype == dtype) fitting.push_back(r);
    }
    if (fitting.empty()) return nullptr;
    return &tensors_[fitting[rng_.Below(fitting.size())]];
  }

  Value Leaf(const std::string& dtype) {
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
    // A cast of what there is.
    if (!readable_.empty() && rng_.Chance(0.8)) {
      const TensorDecl& other =
          tensors_[readable_[rng_.Below(readable_.size())]];
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

  // A bool that is the same in every order of computation.
  std::string Condition() {
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

  Value Expr(const std::string& dtype, int depth) {
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
        return {absl::StrCat(rng_.Chance(0.5) ? "T.max(" : "T.min(", a.text,
                             ", ", b.text, ")"),
                std::max(a.magnitude, b.magnitude), a.exact && b.exact};
      }
      case 6: {
        const Value b = Expr(dtype, depth - 1);
        const bool lazy = rng_.Chance(0.5);
        return {absl::StrCat(lazy ? "T.if_then_else(" : "T.Select(",
                             Condition(), ", ", a.text, ", ", b.text, ")"),
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
          static const char* const kFunctions[] = {"T.exp", "T.tanh",
                                                   "T.sigmoid", "T.sqrt"};
          const char* function = kFunctions[rng_.Below(4)];
          exact_ = false;
          return {absl::StrCat(function, "(T.min(T.abs(", a.text, "), T.",
                               dtype, "(4.0)))"),
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

  // Brings a value back into the range in which floats are exact.
  Value Bounded(const Value& value, const TensorDecl& t) {
    const double most = t.dtype == "float16" ? kHalfMagnitude : kWideMagnitude;
    if (!IsFloat(t.dtype) || value.magnitude <= most) return value;
    return {absl::StrCat("T.max(T.min(", value.text, ", T.", t.dtype,
                         "(50.0)), T.", t.dtype, "(-50.0))"),
            50, value.exact};
  }

  void Wrote(TensorDecl& t, const Value& value) {
    t.magnitude = std::max(t.magnitude, value.magnitude);
    t.exact = t.exact && value.exact;
    if (t.parameter) wrote_output_ = true;
  }

  TensorDecl& Target(bool to_output) {
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
  void Store(TensorDecl& t, const std::string& at, const Value& value) {
    const Value bounded = Bounded(value, t);
    Line(absl::StrCat(at, " = ", bounded.text));
    Wrote(t, bounded);
  }

  void Let() {
    if (rng_.Chance(0.3) && !indices_.empty()) {
      const IndexVar v = indices_[rng_.Below(indices_.size())];
      if (v.low < 0) return;
      const std::string name = Fresh("k");
      const int64_t shift = rng_.Between(0, 2);
      Line(absl::StrCat(name, " = ", v.name, " + ", shift));
      indices_.push_back({name, v.low + shift, v.high + shift});
      return;
    }
    const std::string dtype = tensors_[rng_.Below(tensors_.size())].dtype;
    const Value value = Expr(dtype, 1);
    const std::string name = Fresh("c");
    Line(absl::StrCat(name, " = ", value.text));
    scalars_.push_back({name, dtype, value.magnitude, value.exact});
  }

  void Statement(bool to_output, int nesting) {
    TensorDecl& t = Target(to_output);
    const size_t indices = indices_.size(), scalars = scalars_.size();
    if (nesting > 0 && rng_.Chance(0.2)) {
      Line(absl::StrCat("if ", Condition(), ":"));
      ++depth_;
      Statement(to_output, nesting - 1);
      --depth_;
      if (rng_.Chance(0.4)) {
        Line("else:");
        ++depth_;
        Statement(to_output, nesting - 1);
        --depth_;
      }
    } else if (nesting > 0 && rng_.Chance(0.12)) {
      const std::string name = Fresh("q");
      const int64_t extent = rng_.Between(1, 4);
      Line(absl::StrCat("for ", name, " in range(", extent, "):"));
      indices_.push_back({name, 0, extent});
      ++depth_;
      Statement(to_output, nesting - 1);
      --depth_;
      indices_.resize(indices);
    } else {
      Store(t, Access(t, rng_.Chance(0.7)),
            Expr(t.dtype, static_cast<int>(rng_.Below(4))));
    }
    // What a branch or a loop declared is gone after it.
    indices_.resize(indices);
    scalars_.resize(scalars);
  }

  // init and update of a reduction into one element; the indices use spatial
  // variables alone where `proper`.
  void Reduction(bool to_output, const std::vector<IndexVar>& spatial,
                 int64_t terms) {
    const bool proper = rng_.Chance(0.85);
    const std::vector<IndexVar> all = indices_;
    TensorDecl& t = Target(to_output);
    indices_ = proper ? spatial : all;
    const std::string at = Access(t, rng_.Chance(0.8));
    indices_ = all;
    const std::string init_at = rng_.Chance(0.04) ? Access(t) : at;
    const std::string read_at = rng_.Chance(0.05) ? Access(t) : at;
    ReduceInto(t, at, init_at, read_at, proper ? spatial : all, terms);
  }

  // `init_at` gets the first value; `at` becomes `read_at` and a term.
  void ReduceInto(TensorDecl& t, const std::string& at,
                  const std::string& init_at, const std::string& read_at,
                  const std::vector<IndexVar>& init_indices, int64_t terms) {
    const std::vector<IndexVar> all = indices_;
    indices_ = init_indices;
    Value start = Constant(t.dtype);
    if (rng_.Chance(0.2)) start = Expr(t.dtype, 1);
    if (rng_.Chance(0.6) && t.dtype != "bool") {
      start = {absl::StrCat("T.", t.dtype, IsFloat(t.dtype) ? "(0.0)" : "(0)"),
               0};
    }
    Line("with T.init():");
    ++depth_;
    Store(t, init_at, start);
    --depth_;
    indices_ = all;
    const Value term = Expr(t.dtype, static_cast<int>(rng_.Between(1, 2)));
    Value result{"", 0, term.exact && t.exact && start.exact};
    const double total =
        start.magnitude + static_cast<double>(terms) * term.magnitude;
    const size_t kind = t.dtype == "bool" ? 9 : rng_.Below(8);
    if (kind < 5 &&
        total <= (t.dtype == "float16" ? kHalfMagnitude : kWideMagnitude)) {
      result.text = absl::StrCat(read_at, " + ", term.text);
      result.magnitude = total;
    } else if (kind == 9) {
      result.text = absl::StrCat(rng_.Chance(0.5) ? "T.And(" : "T.Or(", read_at,
                                 ", ", term.text, ")");
      result.magnitude = 1;
    } else {
      result.text = absl::StrCat(rng_.Chance(0.5) ? "T.max(" : "T.min(",
                                 read_at, ", ", term.text, ")");
      result.magnitude = std::max(start.magnitude, term.magnitude);
    }
    Line(absl::StrCat(at, " = ", result.text));
    Wrote(t, result);
  }

  // --- Blocks ---
  struct LoopDecl {
    std::string name;
    int64_t low = 0, extent = 1;
  };

  // A block below the loops of loops_.
  void Block(bool to_output) {
    if (rng_.Chance(0.04)) {
      Line(absl::StrCat(
          "if ", loops_.empty() ? "T.bool(True)" : LoopCondition(), ":"));
      ++depth_;
      BlockBody(to_output);
      --depth_;
      return;
    }
    BlockBody(to_output);
  }

  std::string LoopCondition() {
    const LoopDecl& loop = loops_[rng_.Below(loops_.size())];
    return absl::StrCat(loop.name, " < ",
                        loop.low + rng_.Between(1, loop.extent));
  }

  void BlockBody(bool to_output) {
    static const char* const kNames[] = {"blk", "B", "C", "T_add", "compute"};
    Line(absl::StrCat("with T.block(\"", kNames[rng_.Below(5)], next_block_++,
                      "\"):"));
    ++depth_;
    const std::vector<IndexVar> outer_indices = indices_;
    const std::vector<ScalarVar> outer_scalars = scalars_;
    indices_.clear();
    std::vector<IndexVar> spatial;
    int64_t terms = 1;
    bool reduces = false;
    const bool wants_reduction = rng_.Chance(0.4);
    std::vector<std::string> axes;
    std::string where;
    std::vector<LoopDecl> loops = loops_;
    rng_.Shuffle(loops);
    for (size_t i = 0; i < loops.size(); ++i) {
      const LoopDecl& loop = loops[i];
      if (rng_.Chance(0.06)) continue;  // repeats the block
      std::string binding = loop.name;
      int64_t low = loop.low, high = loop.low + loop.extent;
      const double kind = rng_.Uniform();
      if (kind < 0.1 && i + 1 < loops.size() && low == 0 &&
          loops[i + 1].low == 0) {
        binding = absl::StrCat(loop.name, " * ", loops[i + 1].extent, " + ",
                               loops[i + 1].name);
        high = loop.extent * loops[i + 1].extent;
        ++i;
      } else if (kind < 0.14 && low == 0) {
        const int64_t c = rng_.Between(2, 3);
        binding = absl::StrCat(loop.name, " // ", c);
        high = (high - 1) / c + 1;
      } else if (kind < 0.18 && low == 0) {
        const int64_t c = rng_.Between(2, 3);
        binding = absl::StrCat(loop.name, " % ", c);
        high = std::min(high, c);
      } else if (kind < 0.22) {
        const int64_t shift = rng_.Between(1, 3);
        binding = absl::StrCat(loop.name, " + ", shift);
        low += shift;
        high += shift;
      } else if (kind < 0.25 && i + 1 < loops.size() && low == 0 &&
                 loops[i + 1].low == 0) {
        // Overlapping: a halo.
        binding = absl::StrCat(loop.name, " + ", loops[i + 1].name);
        high = loop.extent + loops[i + 1].extent - 1;
        ++i;
      }
      if (where.empty() && high - low > 2 && rng_.Chance(0.08)) {
        // A tail: the domain is smaller than what the loops reach.
        high -= rng_.Between(1, (high - low) / 2);
        where = absl::StrCat(binding, " < ", high);
      }
      const bool reduce = wants_reduction && rng_.Chance(0.5);
      const std::string name = Fresh("v");
      const std::string domain = low == 0 && rng_.Chance(0.95)
                                     ? absl::StrCat(high)
                                     : absl::StrCat("(", low, ", ", high, ")");
      axes.push_back(absl::StrCat(name, " = T.axis.",
                                  reduce ? "reduce(" : "spatial(", domain, ", ",
                                  binding, ")"));
      indices_.push_back({name, low, high});
      if (reduce) {
        reduces = true;
        terms *= high - low;
      } else {
        spatial.push_back(indices_.back());
      }
    }
    if (axes.empty() || (wants_reduction && !reduces)) {
      // A variable over a constant.
      const std::string name = Fresh("v");
      axes.push_back(absl::StrCat(name, " = T.axis.",
                                  wants_reduction ? "reduce" : "spatial",
                                  "(1, 0)"));
      indices_.push_back({name, 0, 1});
      if (wants_reduction) {
        reduces = true;
      } else {
        spatial.push_back(indices_.back());
      }
    }
    if (where.empty() && !loops_.empty() && rng_.Chance(0.05)) {
      where = LoopCondition();
    }
    for (const std::string& axis : axes) Line(axis);
    if (!where.empty()) Line(absl::StrCat("T.where(", where, ")"));
    int64_t repeats = 1;
    for (const LoopDecl& loop : loops_) repeats *= loop.extent;
    if (reduces && rng_.Chance(0.9)) {
      Reduction(to_output, spatial, std::max(terms, repeats));
    } else {
      const int statements = rng_.Chance(0.75) ? 1 : 2;
      for (int s = 0; s < statements; ++s) {
        if (rng_.Chance(0.2)) Let();
        Statement(to_output, 2);
      }
    }
    indices_ = outer_indices;
    scalars_ = outer_scalars;
    --depth_;
  }

  // The first writer of a temporary: every element, one each.
  void FillNest(int tensor) {
    TensorDecl& t = tensors_[tensor];
    const int depth = depth_;
    loops_.clear();
    std::vector<std::string> at;
    for (const int64_t extent : t.shape) OpenLoop(extent, 0);
    Line(absl::StrCat("with T.block(\"fill", next_block_++, "\"):"));
    ++depth_;
    indices_.clear();
    for (const LoopDecl& loop : loops_) {
      const std::string name = Fresh("v");
      Line(absl::StrCat(name, " = T.axis.spatial(", loop.extent, ", ",
                        loop.name, ")"));
      indices_.push_back({name, 0, loop.extent});
      at.push_back(name);
    }
    Store(t,
          t.shape.empty()
              ? t.name + "[()]"
              : absl::StrCat(t.name, "[", absl::StrJoin(at, ", "), "]"),
          Expr(t.dtype, static_cast<int>(rng_.Below(3))));
    indices_.clear();
    scalars_.clear();
    depth_ = depth;
    loops_.clear();
  }

  // A complete block or a reduction into every element of a temporary of
  // `unfilled`, which is taken from there, or of an output.
  void RegularNest(std::vector<int>& unfilled) {
    int target = -1;
    if (!unfilled.empty()) {
      target = unfilled.back();
      unfilled.pop_back();
    } else {
      for (size_t i = 0; i < tensors_.size(); ++i) {
        if (tensors_[i].parameter && !tensors_[i].input &&
            (target < 0 || rng_.Chance(0.5))) {
          target = static_cast<int>(i);
        }
      }
    }
    TensorDecl& t = tensors_[target];
    const int depth = depth_;
    loops_.clear();
    indices_.clear();
    int64_t iterations = 1;
    std::vector<std::pair<int64_t, bool>> extents;  // and whether it reduces
    for (const int64_t extent : t.shape) {
      extents.emplace_back(extent, false);
      iterations *= extent;
    }
    const int reduce =
        rng_.Chance(0.45) ? static_cast<int>(rng_.Between(1, 2)) : 0;
    for (int i = 0; i < reduce; ++i) {
      const int64_t extent = RandomExtent();
      extents.emplace_back(
          extent * iterations > 4 * kMaxIterations ? 1 : extent, true);
      iterations *= extents.back().first;
    }
    std::vector<size_t> order(extents.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (rng_.Chance(0.4)) rng_.Shuffle(order);
    std::vector<std::string> loop_of(extents.size());
    for (const size_t i : order) {
      OpenLoop(extents[i].first, 0);
      loop_of[i] = loops_.back().name;
    }
    Line(absl::StrCat("with T.block(\"R", next_block_++, "\"):"));
    ++depth_;
    std::vector<std::string> at;
    std::vector<IndexVar> spatial;
    int64_t terms = 1;
    for (size_t i = 0; i < extents.size(); ++i) {
      const auto [extent, reduces] = extents[i];
      const std::string name = Fresh("v");
      Line(absl::StrCat(name,
                        reduces ? " = T.axis.reduce(" : " = T.axis.spatial(",
                        extent, ", ", loop_of[i], ")"));
      indices_.push_back({name, 0, extent});
      if (reduces) {
        terms *= extent;
      } else {
        at.push_back(name);
        spatial.push_back(indices_.back());
      }
    }
    const std::string element =
        t.shape.empty()
            ? t.name + "[()]"
            : absl::StrCat(t.name, "[", absl::StrJoin(at, ", "), "]");
    // A block of its own reads other buffers alone.
    const std::vector<int> readable = readable_;
    std::erase(readable_, target);
    if (reduce > 0) {
      ReduceInto(t, element, element, element, spatial, terms);
    } else {
      Store(t, element, Expr(t.dtype, static_cast<int>(rng_.Below(4))));
    }
    readable_ = readable;
    if (std::find(readable_.begin(), readable_.end(), target) ==
        readable_.end()) {
      readable_.push_back(target);
    }
    indices_.clear();
    scalars_.clear();
    depth_ = depth;
    loops_.clear();
  }

  void OpenLoop(int64_t extent, int64_t low) {
    const std::string name = Fresh("i");
    Line(low == 0 ? absl::StrCat("for ", name, " in range(", extent, "):")
                  : absl::StrCat("for ", name, " in range(", low, ", ",
                                 low + extent, "):"));
    loops_.push_back({name, low, extent});
    ++depth_;
  }

  void Nest(bool to_output = false) {
    const int depth = depth_;
    loops_.clear();
    pending_readable_.clear();
    const int count = static_cast<int>(rng_.Between(0, 4));
    int64_t iterations = 1;
    // Extents that fit a tensor make plain accesses possible.
    const TensorDecl& like = tensors_[rng_.Below(tensors_.size())];
    for (int i = 0; i < count; ++i) {
      int64_t extent =
          i < static_cast<int>(like.shape.size()) && rng_.Chance(0.7)
              ? like.shape[i]
              : RandomExtent();
      if (iterations * extent > kMaxIterations) extent = 1;
      iterations *= extent;
      OpenLoop(extent, rng_.Chance(0.03) ? rng_.Between(1, 3) : 0);
      // A block beside the loops that follow.
      if (rng_.Chance(0.07)) Block(to_output);
    }
    const int blocks = rng_.Chance(0.75) ? 1 : 2;
    for (int b = 0; b < blocks; ++b) Block(to_output);
    depth_ = depth;
    loops_.clear();
    for (const int t : pending_readable_) {
      if (std::find(readable_.begin(), readable_.end(), t) == readable_.end()) {
        readable_.push_back(t);
      }
    }
  }

  Rng& rng_;
  std::vector<TensorDecl> tensors_;
  std::vector<int> readable_;          // tensors that reads may choose
  std::vector<int> pending_readable_;  // written in the nest at hand
  std::vector<LoopDecl> loops_;
  std::vector<IndexVar> indices_;
  std::vector<ScalarVar> scalars_;
  std::string body_;
  int depth_ = 0;
  int next_name_ = 0;
  int next_block_ = 0;
  bool wrote_output_ = false;
  bool exact_ = true;
};

}  // namespace

TextProgram RandomTextProgram(Rng& rng) { return Generator(rng).Make(); }

}  // namespace tilefarm::property

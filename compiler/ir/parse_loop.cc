// Parses loops.
//
// Extents are constants. A bound that depends on outer variables, as in the
// output of TVM's compute_at and adaptive pooling, becomes the largest possible
// extent and a guard:
//
//   for j in range(T.min(4, 10 - i * 4)):     for j in range(4):
//       with T.block("b"):               ->       with T.block("b"):
//           ...                                       T.where(j < T.min(...))
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/affine.h"
#include "compiler/ir/parser_internal.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

std::optional<ForKind> LoopKind(std::string_view name) {
  if (name == "range" || name == "serial" || name == "grid") {
    return ForKind::kSerial;
  }
  if (name == "parallel") return ForKind::kParallel;
  if (name == "vectorized") return ForKind::kVectorized;
  if (name == "unroll" || name == "unrolled") return ForKind::kUnrolled;
  if (name == "thread_binding") return ForKind::kThreadBinding;
  return std::nullopt;
}

// Runs `stmt` only if `condition` holds: blocks get it as their predicate,
// other statements are put inside an `if`.
Stmt Guard(const Stmt& stmt, const Expr& condition) {
  if (const auto* loop = As<ForNode>(stmt)) {
    return std::make_shared<const ForNode>(
        loop->var, loop->min, loop->extent, loop->for_kind,
        Guard(loop->body, condition), loop->annotations, loop->thread_tag);
  }
  if (const auto* seq = As<SeqNode>(stmt)) {
    std::vector<Stmt> out;
    for (const Stmt& child : seq->stmts) out.push_back(Guard(child, condition));
    return MakeSeq(std::move(out));
  }
  if (const auto* block = As<BlockNode>(stmt)) {
    BlockNode guarded = *block;
    guarded.predicate = And(condition, guarded.predicate);
    return BlockOf(std::move(guarded));
  }
  return IsNoOp(stmt) ? stmt : MakeIf(condition, stmt);
}

}  // namespace

// An int64 expression of outer variables without loads.
absl::StatusOr<Expr> Parser::ParseBound() {
  const size_t offset = Peek().offset;
  static_context_ = "loop bounds are constants, write the number";
  static_allows_vars_ = true;
  absl::StatusOr<Value> value = ParseExpr();
  static_allows_vars_ = false;
  static_context_ = {};
  if (!value.ok()) return value.status();
  return At(offset, AsIndex(*value, "a loop bound"));
}

absl::StatusOr<std::pair<int64_t, int64_t>> Parser::ConstBounds(
    const Expr& expr) const {
  if (const auto value = AsInt(expr)) return std::pair(*value, *value);
  VarBounds known;
  for (const std::string& name : declared_) {
    const Symbol& symbol = symbols_.at(name);
    if (symbol.kind == Symbol::kLoop || symbol.kind == Symbol::kBlockVar) {
      known[symbol.var.get()] = {symbol.min, symbol.min + symbol.extent - 1};
    }
  }
  const auto bounds = BoundsOver(expr, known);
  std::optional<int64_t> low, high;
  if (bounds) {
    low = AsInt(bounds->first);
    high = AsInt(bounds->second);
  }
  if (!low || !high) {
    return absl::InvalidArgumentError(
        absl::StrCat("no constant bounds of ", ToString(expr), " are known"));
  }
  return std::pair(*low, *high);
}

absl::StatusOr<Parser::LoopRange> Parser::RangeOf(const Expr& begin,
                                                  const Expr& end) const {
  TF_ASSIGN_OR_RETURN(const auto begins, ConstBounds(begin));
  TF_ASSIGN_OR_RETURN(const auto ends, ConstBounds(end));
  if (begins.first != begins.second) {
    return absl::InvalidArgumentError("a loop starts at a constant");
  }
  LoopRange out;
  out.min = begins.first;
  if (__builtin_sub_overflow(ends.second, out.min, &out.extent)) {
    return absl::InvalidArgumentError(
        "the loop's extent does not fit in int64");
  }
  if (!AsInt(end)) out.stop = end;
  return out;
}

absl::StatusOr<std::string> Parser::ParseThreadTag() {
  static constexpr std::string_view kTags[] = {
      "blockIdx.x",  "blockIdx.y",  "blockIdx.z",  "clusterCtaIdx.x",
      "threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread",
      "vthread.x",   "vthread.y",   "vthread.z"};
  const size_t at = Peek().offset;
  TF_ASSIGN_OR_RETURN(std::string thread, ExpectString("a thread axis"));
  if (std::find(std::begin(kTags), std::end(kTags), thread) !=
      std::end(kTags)) {
    return thread;
  }
  return Error(at, absl::StrCat("unknown thread axis '", thread,
                                "'; write \"threadIdx.x\" or alike"));
}

absl::StatusOr<AttrMap> Parser::ParseLoopArgs(const Callee& callee,
                                              std::vector<Expr>& bounds,
                                              std::string& thread) {
  AttrMap annotations;
  TF_RETURN_IF_ERROR(Expect("(", "for the extent"));
  while (!AtOp(")")) {
    if (Peek().kind == TokenKind::kName && AtOp("=", 1)) {
      if (AtName("annotations") && callee.name != "grid" &&
          callee.name != "range") {
        at_ += 2;
        if (TryName("None")) {
          TF_RETURN_IF_ERROR(NextItem(")"));
          continue;
        }
        TF_ASSIGN_OR_RETURN(annotations, ParseAttrMap());
      } else if (AtName("thread") && callee.name == "thread_binding") {
        at_ += 2;
        TF_ASSIGN_OR_RETURN(thread, ParseThreadTag());
      } else if (callee.name != "grid" && callee.name != "range" &&
                 TryKeyword({bounds.empty() ? "start" : "stop"})) {
        TF_ASSIGN_OR_RETURN(Expr bound, ParseBound());
        bounds.push_back(std::move(bound));
      } else {
        return ErrorHere(absl::StrCat("unknown argument '", std::string(Text()),
                                      "' of a loop"));
      }
    } else if (callee.name == "thread_binding" &&
               Peek().kind == TokenKind::kString) {
      TF_ASSIGN_OR_RETURN(thread, ParseThreadTag());
    } else {
      TF_ASSIGN_OR_RETURN(Expr bound, ParseBound());
      bounds.push_back(std::move(bound));
    }
    TF_RETURN_IF_ERROR(NextItem(")"));
  }
  TF_RETURN_IF_ERROR(Expect(")", "after the loop's arguments"));
  if (callee.name == "thread_binding" && thread.empty()) {
    return Error(callee.offset, "T.thread_binding needs thread=\"...\"");
  }
  return annotations;
}

absl::StatusOr<Stmt> Parser::ParseFor() {
  const size_t for_at = Peek().offset;
  ++at_;
  std::vector<std::string> names;
  std::vector<size_t> offsets;
  const bool bracket = TryOp("(");
  do {
    offsets.push_back(Peek().offset);
    TF_ASSIGN_OR_RETURN(std::string name, ExpectName("a loop variable"));
    names.push_back(std::move(name));
  } while (TryOp(",") && !AtName("in") && !AtOp(")"));
  if (bracket) TF_RETURN_IF_ERROR(Expect(")", "after the loop variables"));
  if (!TryName("in")) {
    return ErrorHere(absl::StrCat("expected 'in', found ", Found()));
  }
  if (Peek().kind != TokenKind::kName) {
    return ErrorHere(absl::StrCat(
        "expected range(...), T.grid(...) or alike, found ", Found()));
  }
  TF_ASSIGN_OR_RETURN(Callee callee, ParseCallee());
  const auto kind = LoopKind(callee.name);
  if (!kind ||
      (!callee.prefixed && callee.name != "range" && callee.name != "grid")) {
    return Error(callee.offset,
                 absl::StrCat("unknown loop '", callee.name,
                              "'; write range, T.serial, T.grid, T.parallel, "
                              "T.vectorized, T.unroll or T.thread_binding"));
  }
  std::vector<Expr> bounds;
  std::string thread;
  TF_ASSIGN_OR_RETURN(AttrMap annotations,
                      ParseLoopArgs(callee, bounds, thread));
  std::vector<LoopRange> ranges;
  if (callee.name == "grid" || bounds.size() == 1) {
    for (const Expr& bound : bounds) {
      TF_ASSIGN_OR_RETURN(LoopRange range,
                          At(callee.offset, RangeOf(IntConst(0), bound)));
      ranges.push_back(std::move(range));
    }
  } else if (bounds.size() == 2) {
    TF_ASSIGN_OR_RETURN(LoopRange range,
                        At(callee.offset, RangeOf(bounds[0], bounds[1])));
    ranges.push_back(std::move(range));
  } else {
    return Error(callee.offset,
                 absl::StrCat(callee.name, " takes (extent) or (start, stop); ",
                              "the step is 1"));
  }
  if (ranges.size() != names.size()) {
    return Error(offsets[0], absl::StrCat(names.size(), " loop variable",
                                          names.size() == 1 ? "" : "s", " for ",
                                          ranges.size(), " extent",
                                          ranges.size() == 1 ? "" : "s"));
  }
  loops_ += static_cast<int>(names.size());
  if (loops_ > limits_.max_loops) {
    return Error(for_at, absl::StrCat("the function has more than ",
                                      limits_.max_loops, " loops"));
  }
  const int levels = static_cast<int>(names.size());
  TF_RETURN_IF_ERROR(EnterStatement(for_at, levels));
  const size_t mark = ScopeMark();
  std::vector<Var> vars;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& [min, extent, stop] = ranges[i];
    if (extent < 1 || extent > limits_.max_extent ||
        min < -limits_.max_extent || min > limits_.max_extent) {
      return Error(callee.offset,
                   absl::StrCat("loop '", names[i], "' has extent ", extent,
                                "; it must be from 1 to ", limits_.max_extent));
    }
    Symbol symbol{Symbol::kLoop};
    symbol.var = MakeVar(names[i]);
    symbol.min = min;
    symbol.extent = extent;
    symbol.block_depth = static_cast<int>(blocks_.size());
    vars.push_back(symbol.var);
    TF_RETURN_IF_ERROR(Declare(names[i], offsets[i], std::move(symbol)));
  }
  TF_ASSIGN_OR_RETURN(Stmt body, ParseSuite());
  CloseScope(mark);
  statement_depth_ -= levels;
  for (size_t i = names.size(); i-- > 0;) {
    if (ranges[i].stop != nullptr) {
      body = Guard(body, LT(vars[i], ranges[i].stop));
    }
    body = std::make_shared<const ForNode>(
        vars[i], IntConst(ranges[i].min), IntConst(ranges[i].extent), *kind,
        std::move(body), annotations, thread);
  }
  return body;
}

}  // namespace tilefarm::ir

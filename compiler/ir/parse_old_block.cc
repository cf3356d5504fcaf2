// Parses blocks in the syntax of TVM 0.8: domains before the name, variables
// after it, and bindings in the body or omitted.
//
//   with T.block([8, T.reduce_axis(0, 8)], "C") as [vi, vk]:
//       T.bind(vi, i)
//       T.bind(vk, k)
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/parser_internal.h"

namespace tilefarm::ir {

// The domains of a block in the syntax of TVM 0.8: [128, T.reduce_axis(0, 64)].
absl::Status Parser::ParseOldDomains(std::vector<IterVar>& iters) {
  const std::string_view close = AtOp("[") ? "]" : ")";
  ++at_;
  while (!AtOp(close)) {
    IterVar& iter = iters.emplace_back();
    const size_t at = Peek().offset;
    int64_t begin = 0, end = 0;
    if (Peek().kind == TokenKind::kName) {
      TF_ASSIGN_OR_RETURN(const Callee callee, ParseCallee());
      if (callee.name == "reduce_axis") {
        iter.type = IterType::kReduce;
      } else if (callee.name == "scan_axis" || callee.name == "opaque_axis") {
        iter.type = IterType::kOpaque;
      } else if (callee.name != "range") {
        return Error(at, absl::StrCat("unknown axis 'T.", callee.name, "'"));
      }
      TF_RETURN_IF_ERROR(Expect("(", "for the axis"));
      TF_ASSIGN_OR_RETURN(begin, ParseConstInt("the start of the axis"));
      TF_RETURN_IF_ERROR(Expect(",", "between begin and end of the axis"));
      TF_ASSIGN_OR_RETURN(end, ParseConstInt("the end of the axis"));
      TF_RETURN_IF_ERROR(Expect(")", "after the axis"));
    } else {
      TF_ASSIGN_OR_RETURN(end, ParseConstInt("the extent of the axis"));
    }
    int64_t extent = 0;
    if (__builtin_sub_overflow(end, begin, &extent)) extent = 0;
    TF_RETURN_IF_ERROR(CheckAxisDomain("", begin, extent, at));
    iter.dom = {IntConst(begin), IntConst(extent)};
    TF_RETURN_IF_ERROR(NextItem(close));
  }
  ++at_;
  return absl::OkStatus();
}

// "as [vi, vk]", "as vi".
absl::Status Parser::ParseOldNames(const std::vector<IterVar>& iters) {
  if (!TryName("as")) {
    if (iters.empty()) return absl::OkStatus();
    return ErrorHere("expected 'as' and the names of the block's variables");
  }
  const size_t at = Peek().offset;
  const bool list = AtOp("[") || AtOp("(");
  const std::string_view close = AtOp("(") ? ")" : "]";
  if (list) ++at_;
  size_t count = 0;
  while (!AtOp(":") && !(list && AtOp(close))) {
    const size_t name_at = Peek().offset;
    TF_ASSIGN_OR_RETURN(const std::string name, ExpectName("a variable"));
    if (count < iters.size()) {
      IterVar iter = iters[count];
      iter.var = MakeVar(name);
      TF_RETURN_IF_ERROR(AddIter(name, name_at, std::move(iter)));
    }
    ++count;
    if (!TryOp(",")) break;
  }
  if (list) TF_RETURN_IF_ERROR(Expect(close, "after the variables"));
  if (count == iters.size()) return absl::OkStatus();
  return Error(
      at, absl::StrCat(count, " names for ", iters.size(), " block variables"));
}

// T.bind(vi, i): binds a variable of the block.
absl::Status Parser::ParseBind() {
  TF_RETURN_IF_ERROR(Expect("(", "for the variable"));
  const size_t at = Peek().offset;
  TF_ASSIGN_OR_RETURN(const std::string name, ExpectName("a block variable"));
  const Symbol* symbol = Lookup(name);
  std::vector<IterVar>& iters = blocks_.back()->node.iters;
  const auto iter =
      std::find_if(iters.begin(), iters.end(), [&](const IterVar& one) {
        return symbol != nullptr && one.var == symbol->var;
      });
  if (iter == iters.end()) {
    return Error(at, absl::StrCat("'", name, "' is no variable of the block"));
  }
  if (iter->binding != nullptr) {
    return Error(at, absl::StrCat("'", name, "' is bound twice"));
  }
  TF_RETURN_IF_ERROR(Expect(",", "after the variable"));
  TF_ASSIGN_OR_RETURN(iter->binding, ParseBinding());
  return Expect(")", "after the binding");
}

// The loops between the innermost open block and this place, outermost first.
std::vector<Var> Parser::LoopsOfBlock() const {
  std::vector<Var> loops;
  for (const std::string& name : declared_) {
    const Symbol& symbol = symbols_.at(name);
    if (symbol.kind == Symbol::kLoop &&
        symbol.block_depth == static_cast<int>(blocks_.size())) {
      loops.push_back(symbol.var);
    }
  }
  return loops;
}

// Completes missing T.bind calls as TVM 0.8 did: variables are bound to the
// loops around the block in their order or, if there are none, to new loops,
// which are returned in `made`.
absl::Status Parser::CompleteBindings(const std::vector<Var>& loops,
                                      BlockState& state,
                                      std::vector<IterVar>& made) {
  std::vector<IterVar>& iters = state.node.iters;
  const auto unbound = std::count_if(
      iters.begin(), iters.end(),
      [](const IterVar& iter) { return iter.binding == nullptr; });
  if (unbound == 0) return absl::OkStatus();
  if (static_cast<size_t>(unbound) != iters.size() ||
      (!loops.empty() && loops.size() != iters.size())) {
    return Error(state.offset,
                 absl::StrCat(unbound, " of ", iters.size(),
                              " block variables have no T.bind, and there are ",
                              loops.size(), " loops around the block"));
  }
  for (size_t i = 0; i < iters.size(); ++i) {
    if (!loops.empty()) {
      iters[i].binding = loops[i];
      continue;
    }
    IterVar loop{MakeVar(absl::StrCat("i", i)), iters[i].dom};
    iters[i].binding = loop.var;
    made.push_back(std::move(loop));
  }
  loops_ += static_cast<int>(made.size());
  if (loops_ > limits_.max_loops) {
    return Error(state.offset, absl::StrCat("the function has more than ",
                                            limits_.max_loops, " loops"));
  }
  TF_RETURN_IF_ERROR(
      EnterStatement(state.offset, static_cast<int>(made.size())));
  statement_depth_ -= static_cast<int>(made.size());
  return absl::OkStatus();
}

}  // namespace tilefarm::ir

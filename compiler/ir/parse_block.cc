// Parses blocks and the declarations inside of them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/affine.h"
#include "compiler/ir/parser_internal.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

bool UsesIters(const Expr& expr, const std::vector<IterVar>& iters) {
  return std::any_of(iters.begin(), iters.end(), [&](const IterVar& iter) {
    return UsesVar(expr, iter.var.get());
  });
}

}  // namespace

absl::Status Parser::RequireBlockLevel(size_t offset,
                                       std::string_view what) const {
  if (!blocks_.empty() && blocks_.back()->suite_depth == suite_depth_) {
    return absl::OkStatus();
  }
  return Error(offset,
               absl::StrCat(std::string(what), " belongs directly in a block"));
}

std::string Parser::UniqueBlockName(const std::string& name) {
  if (function_->used_names.insert(name).second) return name;
  int& suffix = function_->suffixes[name];
  while (true) {
    std::string candidate = absl::StrCat(name, "_", ++suffix);
    if (!function_->given_names.contains(candidate) &&
        function_->used_names.insert(candidate).second) {
      return candidate;
    }
  }
}

absl::Status Parser::ParseBlockName(std::string& name,
                                    std::vector<IterVar>* iters) {
  TF_RETURN_IF_ERROR(Expect("(", "for the block's name"));
  name = "block";
  if (iters != nullptr && (AtOp("[") || AtOp("("))) {
    TF_RETURN_IF_ERROR(ParseOldDomains(*iters));
    if (!TryOp(",") && !AtOp(")")) return NextItem(")");
  }
  TryKeyword({"name", "name_hint"});
  const size_t offset = Peek().offset;
  if (!AtOp(")")) {
    TF_ASSIGN_OR_RETURN(name, ExpectString("the block's name"));
  }
  if (AtName("no_realize") || AtOp(",")) {
    return ErrorHere("a block has a name and nothing else");
  }
  if (name.empty()) name = "block";
  for (char c : name) {
    if (static_cast<unsigned char>(c) < 0x20) {
      return Error(offset, "control character in a block's name");
    }
  }
  return Expect(")", "after the block's name");
}

absl::StatusOr<Stmt> Parser::ParseBlock(size_t offset) {
  TF_RETURN_IF_ERROR(EnterStatement(offset));
  std::string name;
  std::vector<IterVar> old_iters;
  TF_RETURN_IF_ERROR(ParseBlockName(name, &old_iters));
  const std::vector<Var> loops =
      old_iters.empty() ? std::vector<Var>() : LoopsOfBlock();
  BlockState state;
  state.node.name = UniqueBlockName(name);
  state.node.predicate = BoolConst(true);
  state.offset = offset;
  state.suite_depth = suite_depth_ + 1;
  blocks_.push_back(&state);
  const size_t mark = ScopeMark();
  const absl::Status named = ParseOldNames(old_iters);
  absl::StatusOr<Stmt> body =
      named.ok() ? ParseSuite() : absl::StatusOr<Stmt>(named);
  CloseScope(mark);
  blocks_.pop_back();
  --statement_depth_;
  if (!body.ok()) return body;
  state.node.body = *std::move(body);
  std::vector<IterVar> made;
  TF_RETURN_IF_ERROR(CompleteBindings(loops, state, made));
  if (state.regions_unknown) state.has_reads = state.has_writes = false;
  // Replace declared regions that do not cover all accesses.
  Accesses accesses = DetectAccesses(state.node);
  if (!state.has_reads || !RegionsCover(state.node.reads, accesses.reads)) {
    state.node.reads = std::move(accesses.reads);
  }
  if (!state.has_writes || !RegionsCover(state.node.writes, accesses.writes)) {
    state.node.writes = std::move(accesses.writes);
  }
  Stmt out = BlockOf(std::move(state.node));
  for (size_t i = made.size(); i-- > 0;) {
    out = std::make_shared<const ForNode>(made[i].var, made[i].dom.min,
                                          made[i].dom.extent, ForKind::kSerial,
                                          std::move(out));
  }
  return out;
}

// with T.block("root"): the root block, explicitly.
absl::Status Parser::ParseRootBlock(std::vector<Stmt>& out, size_t offset) {
  if (!out.empty()) {
    return Error(offset, "the block \"root\" must hold the whole function");
  }
  std::string name;
  TF_RETURN_IF_ERROR(ParseBlockName(name, nullptr));
  BlockState& root = *blocks_.back();
  root.explicit_root = true;
  ++root.suite_depth;
  TF_ASSIGN_OR_RETURN(Stmt body, ParseSuite());
  --root.suite_depth;
  if (Peek().kind != TokenKind::kDedent && Peek().kind != TokenKind::kEnd) {
    return ErrorHere("the block \"root\" must hold the whole function");
  }
  out.push_back(std::move(body));
  return absl::OkStatus();
}

absl::Status Parser::ParseInit(size_t offset) {
  TF_RETURN_IF_ERROR(RequireBlockLevel(offset, "T.init"));
  TF_RETURN_IF_ERROR(Expect("(", "after T.init"));
  TF_RETURN_IF_ERROR(Expect(")", "after T.init("));
  BlockNode& block = blocks_.back()->node;
  if (block.init != nullptr) {
    return Error(offset, "the block has two T.init");
  }
  if (blocks_.back()->reduce_starts_vary) {
    return Error(offset,
                 "T.init in a block whose T.axis.reduce has no "
                 "constant start");
  }
  const bool reduces = std::any_of(
      block.iters.begin(), block.iters.end(),
      [](const IterVar& iter) { return iter.type == IterType::kReduce; });
  if (!reduces) {
    return Error(offset, absl::StrCat("T.init in block \"", block.name,
                                      "\", which has no T.axis.reduce"));
  }
  TF_RETURN_IF_ERROR(EnterStatement(offset));
  TF_ASSIGN_OR_RETURN(Stmt init, ParseSuite());
  --statement_depth_;
  if (!IsNoOp(init)) block.init = std::move(init);
  return absl::OkStatus();
}

absl::Status Parser::ParseAxisAssignment(const std::vector<std::string>& names,
                                         const std::vector<size_t>& offsets,
                                         const Callee& callee) {
  TF_RETURN_IF_ERROR(RequireBlockLevel(callee.offset, "T." + callee.name));
  if (blocks_.back()->is_root) {
    return Error(callee.offset,
                 absl::StrCat("T.", callee.name, " belongs in a T.block"));
  }
  if (callee.name == "axis.remap") return ParseRemap(names, offsets);
  if (names.size() != 1) {
    return Error(offsets[1],
                 absl::StrCat("T.", callee.name, " makes one variable"));
  }
  IterType type;
  if (callee.name == "axis.spatial" || callee.name == "axis.S") {
    type = IterType::kSpatial;
  } else if (callee.name == "axis.reduce" || callee.name == "axis.R") {
    type = IterType::kReduce;
  } else if (callee.name == "axis.opaque" || callee.name == "axis.scan") {
    type = IterType::kOpaque;
  } else {
    return Error(callee.offset, absl::StrCat("unknown axis 'T.", callee.name,
                                             "'; T.axis.spatial, reduce, "
                                             "opaque, scan and remap are "
                                             "known"));
  }
  return ParseAxis(names[0], offsets[0], type);
}

absl::Status Parser::AddIter(const std::string& name, size_t offset,
                             IterVar iter) {
  Symbol symbol{Symbol::kBlockVar};
  symbol.var = iter.var;
  symbol.block_depth = static_cast<int>(blocks_.size());
  symbol.min = *AsInt(iter.dom.min);
  symbol.extent = *AsInt(iter.dom.extent);
  TF_RETURN_IF_ERROR(CountNode());
  TF_RETURN_IF_ERROR(Declare(name, offset, std::move(symbol)));
  blocks_.back()->node.iters.push_back(std::move(iter));
  return absl::OkStatus();
}

// (extent, binding) or ((begin, end), binding).
absl::Status Parser::ParseAxis(const std::string& name, size_t name_offset,
                               IterType type) {
  TF_RETURN_IF_ERROR(Expect("(", "for the axis"));
  TryKeyword({"dom"});
  const size_t domain_at = Peek().offset;
  int64_t min = 0;
  int64_t extent = 0;
  const auto domain = [&]() -> absl::Status {
    Expr begin = IntConst(0);
    Expr end;
    if (AtOp("(") || AtOp("[")) {
      const std::string_view close = AtOp("(") ? ")" : "]";
      ++at_;
      TF_ASSIGN_OR_RETURN(begin, ParseBound());
      TF_RETURN_IF_ERROR(Expect(",", "between begin and end of the axis"));
      TF_ASSIGN_OR_RETURN(end, ParseBound());
      TryOp(",");
      TF_RETURN_IF_ERROR(Expect(close, "after the range of the axis"));
    } else {
      TF_ASSIGN_OR_RETURN(end, ParseBound());
    }
    // Widens a domain that depends on outer variables; bindings and predicates
    // determine what runs. A reduction's start must not change, since T.init
    // runs there.
    TF_ASSIGN_OR_RETURN(const auto begins, At(domain_at, ConstBounds(begin)));
    TF_ASSIGN_OR_RETURN(const auto ends, At(domain_at, ConstBounds(end)));
    min = begins.first;
    if (type == IterType::kReduce && begins.first != begins.second) {
      blocks_.back()->reduce_starts_vary = true;
    }
    if (__builtin_sub_overflow(ends.second, min, &extent)) extent = 0;
    return absl::OkStatus();
  };
  in_binding_ = true;
  const absl::Status status = domain();
  in_binding_ = false;
  TF_RETURN_IF_ERROR(status);
  TF_RETURN_IF_ERROR(CheckAxisDomain(name, min, extent, domain_at));
  TF_RETURN_IF_ERROR(Expect(",", "between extent and binding of the axis"));
  TryKeyword({"binding", "value"});
  TF_ASSIGN_OR_RETURN(Expr binding, ParseBinding());
  TF_RETURN_IF_ERROR(ParseIndexDType());
  TF_RETURN_IF_ERROR(Expect(")", "after the axis"));
  return AddIter(name, name_offset,
                 {MakeVar(name),
                  {IntConst(min), IntConst(extent)},
                  type,
                  std::move(binding)});
}

absl::Status Parser::CheckAxisDomain(const std::string& name, int64_t min,
                                     int64_t extent, size_t offset) const {
  if (extent >= 1 && extent <= limits_.max_extent &&
      min <= limits_.max_extent && min >= -limits_.max_extent) {
    return absl::OkStatus();
  }
  return Error(offset,
               absl::StrCat("axis ", name.empty() ? "" : "'" + name + "' ",
                            "has extent ", extent, "; it must be from 1 to ",
                            limits_.max_extent));
}

absl::StatusOr<Expr> Parser::ParseBinding() {
  const size_t at = Peek().offset;
  in_binding_ = true;
  absl::StatusOr<Value> value = ParseExpr();
  in_binding_ = false;
  if (!value.ok()) return value.status();
  TF_ASSIGN_OR_RETURN(Expr binding, At(at, AsIndex(*value, "the binding")));
  if (UsesIters(binding, blocks_.back()->node.iters)) {
    return Error(at,
                 "an axis is bound to loops, not to other axes of "
                 "its block");
  }
  return binding;
}

// Parses the dtype of indices, which is int64 whatever the text says.
absl::Status Parser::ParseIndexDType() {
  if (!TryOp(",") || AtOp(")")) return absl::OkStatus();
  TryKeyword({"dtype"});
  const size_t at = Peek().offset;
  TF_ASSIGN_OR_RETURN(const DataType dtype, ParseDType());
  TryOp(",");
  if (dtype.is_integral()) return absl::OkStatus();
  return Error(at,
               absl::StrCat("an axis is an integer, not ", dtype.ToString()));
}

// vi, vj = T.axis.remap("SR", [i, j]).
absl::Status Parser::ParseRemap(const std::vector<std::string>& names,
                                const std::vector<size_t>& offsets) {
  TF_RETURN_IF_ERROR(Expect("(", "for the axes"));
  TryKeyword({"kinds"});
  const size_t kinds_at = Peek().offset;
  TF_ASSIGN_OR_RETURN(std::string kinds, ExpectString("the kinds"));
  for (char c : kinds) {
    if (c != 'S' && c != 'R' && c != 'O') {
      return Error(kinds_at, absl::StrCat("axis kind '", std::string(1, c),
                                          "'; S (spatial), R (reduce) and O "
                                          "(opaque) are known"));
    }
  }
  if (kinds.size() != names.size()) {
    return Error(kinds_at, absl::StrCat(kinds.size(), " axis kinds for ",
                                        names.size(), " variables"));
  }
  TF_RETURN_IF_ERROR(Expect(",", "after the kinds"));
  TryKeyword({"bindings"});
  const bool bracket = AtOp("[") || AtOp("(");
  const std::string_view close = AtOp("(") ? ")" : "]";
  if (!bracket) return ErrorHere("expected a list of loop variables");
  ++at_;
  size_t count = 0;
  while (!AtOp(close)) {
    const size_t at = Peek().offset;
    TF_ASSIGN_OR_RETURN(std::string loop, ExpectName("a loop variable"));
    const Symbol* symbol = Lookup(loop);
    if (symbol == nullptr || symbol->kind != Symbol::kLoop) {
      return Error(at, absl::StrCat("'", loop, "' is no loop variable"));
    }
    if (count >= names.size()) {
      return Error(
          at, absl::StrCat("more loops than the ", names.size(), " variables"));
    }
    IterVar iter{MakeVar(names[count]),
                 {IntConst(symbol->min), IntConst(symbol->extent)},
                 kinds[count] == 'S'   ? IterType::kSpatial
                 : kinds[count] == 'R' ? IterType::kReduce
                                       : IterType::kOpaque,
                 symbol->var};
    TF_RETURN_IF_ERROR(AddIter(names[count], offsets[count], std::move(iter)));
    ++count;
    TF_RETURN_IF_ERROR(NextItem(close));
  }
  if (count != names.size()) {
    return ErrorHere(
        absl::StrCat(count, " loops for ", names.size(), " variables"));
  }
  ++at_;
  TF_RETURN_IF_ERROR(ParseIndexDType());
  return Expect(")", "after the axes");
}

absl::Status Parser::ParseRegions(bool reads) {
  BlockState& state = *blocks_.back();
  const size_t offset = Peek().offset;
  bool& seen = reads ? state.has_reads : state.has_writes;
  if (seen) {
    return Error(offset, absl::StrCat("the block has two T.",
                                      reads ? "reads" : "writes"));
  }
  seen = true;
  TF_RETURN_IF_ERROR(Expect("(", "for the regions"));
  const bool list = TryOp("[");
  const std::string_view close = list ? "]" : ")";
  std::vector<BufferRegion> regions;
  while (!AtOp(close)) {
    TF_ASSIGN_OR_RETURN(std::optional<BufferRegion> region, ParseRegion());
    if (region) {
      regions.push_back(*std::move(region));
    } else {
      state.regions_unknown = true;
    }
    TF_RETURN_IF_ERROR(NextItem(close));
  }
  ++at_;
  if (list) TF_RETURN_IF_ERROR(Expect(")", "after the regions"));
  // The regions of the root are the union of its blocks' regions.
  if (state.is_root) return absl::OkStatus();
  (reads ? state.node.reads : state.node.writes) = std::move(regions);
  return absl::OkStatus();
}

// A[i, j:j + 4], or A for the whole buffer.
absl::StatusOr<std::optional<BufferRegion>> Parser::ParseRegion() {
  const size_t offset = Peek().offset;
  TF_ASSIGN_OR_RETURN(std::string name, ExpectName("a buffer"));
  const Symbol* symbol = Lookup(name);
  if (symbol == nullptr || symbol->kind != Symbol::kBuffer) {
    return Error(offset, absl::StrCat("'", name, "' is no buffer"));
  }
  const Buffer buffer = symbol->buffer;
  const std::shared_ptr<const View> view = symbol->view;
  BufferRegion out{buffer, {}};
  if (!AtOp("[")) {
    for (int64_t extent : buffer->shape) {
      out.region.push_back({IntConst(0), IntConst(extent)});
    }
    return OfBase(std::move(out), view.get());
  }
  ++at_;
  if (AtOp("(") && AtOp(")", 1)) {
    at_ += 2;
  }
  while (!AtOp("]")) {
    const int dim = static_cast<int>(out.region.size());
    const size_t at = Peek().offset;
    const bool in_rank = dim < buffer->ndim();
    Expr begin = IntConst(0);
    if (!AtOp(":")) {
      TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
      TF_ASSIGN_OR_RETURN(begin, At(at, AsIndex(value, "the region's start")));
    }
    Expr extent = IntConst(1);
    if (TryOp(":")) {
      Expr end = IntConst(in_rank ? buffer->shape[dim] : 0);
      if (!AtOp(",") && !AtOp("]") && !AtOp(":")) {
        const size_t end_at = Peek().offset;
        TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
        TF_ASSIGN_OR_RETURN(end,
                            At(end_at, AsIndex(value, "the region's end")));
        if (in_rank) {
          TF_RETURN_IF_ERROR(
              CheckConstIndex(end, 0, buffer->shape[dim], buffer, dim, end_at));
        }
      }
      if (AtOp(":")) return ErrorHere("regions have no step");
      const auto difference = ConstDifference(end, begin);
      if (difference && *difference < 1) {
        return Error(at,
                     absl::StrCat("the region is empty: extent ", *difference));
      }
      extent = difference ? IntConst(*difference)
                          : MakeBinary(BinaryOp::kSub, end, begin);
    }
    if (in_rank) {
      TF_RETURN_IF_ERROR(
          CheckConstIndex(begin, 0, buffer->shape[dim] - 1, buffer, dim, at));
    }
    out.region.push_back({std::move(begin), std::move(extent)});
    TF_RETURN_IF_ERROR(NextItem("]"));
  }
  ++at_;
  if (static_cast<int>(out.region.size()) != buffer->ndim()) {
    return Error(offset, absl::StrCat("'", buffer->name, "' has ",
                                      buffer->ndim(), " dimensions, but the ",
                                      "region has ", out.region.size()));
  }
  return OfBase(std::move(out), view.get());
}

std::optional<BufferRegion> Parser::OfBase(BufferRegion region,
                                           const View* view) {
  if (view == nullptr) return region;
  if (view->starts.empty()) return std::nullopt;
  BufferRegion out{view->base, {}};
  const size_t lead = view->starts.size() - region.region.size();
  for (size_t i = 0; i < view->starts.size(); ++i) {
    Range range{view->starts[i], IntConst(1)};
    if (i >= lead) {
      range.min = range.min + region.region[i - lead].min;
      range.extent = region.region[i - lead].extent;
    }
    out.region.push_back(std::move(range));
  }
  return out;
}

absl::Status Parser::ParseWhere() {
  BlockState& state = *blocks_.back();
  const size_t offset = Peek().offset;
  if (state.is_root) return Error(offset, "T.where belongs in a T.block");
  if (state.has_predicate) return Error(offset, "the block has two T.where");
  TF_RETURN_IF_ERROR(Expect("(", "for the predicate"));
  const size_t at = Peek().offset;
  in_binding_ = true;
  absl::StatusOr<Expr> predicate = ParseCondition("the predicate");
  in_binding_ = false;
  if (!predicate.ok()) return predicate.status();
  if (UsesIters(*predicate, state.node.iters)) {
    return Error(at,
                 "T.where is in terms of the loops, not of the block's "
                 "own axes");
  }
  state.has_predicate = true;
  state.node.predicate = *std::move(predicate);
  return Expect(")", "after the predicate");
}

absl::Status Parser::ParseBlockAttr() {
  const size_t offset = Peek().offset;
  TF_RETURN_IF_ERROR(Expect("(", "for the attributes"));
  TF_ASSIGN_OR_RETURN(AttrMap map, ParseAttrMap());
  for (auto& [key, value] : map) {
    if (!blocks_.back()->node.annotations.emplace(key, value).second) {
      return Error(offset, absl::StrCat("attribute '", key, "' given twice"));
    }
  }
  return Expect(")", "after the attributes");
}

absl::Status Parser::ParseFuncAttr() {
  const size_t offset = Peek().offset;
  TF_RETURN_IF_ERROR(Expect("(", "for the attributes"));
  TF_ASSIGN_OR_RETURN(AttrMap map, ParseAttrMap());
  for (auto& [key, value] : map) {
    if (!function_->func.attrs.emplace(key, value).second) {
      return Error(offset, absl::StrCat("attribute '", key, "' given twice"));
    }
  }
  return Expect(")", "after the attributes");
}

}  // namespace tilefarm::ir

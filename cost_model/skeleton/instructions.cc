// Instructions of a sketch on loops and formulas; each is a few lines of
// arithmetic, and knows when it would have to look closer.
#include <algorithm>

#include "base/status_macros.h"
#include "compiler/space/sketch_rules.h"
#include "cost_model/skeleton/builder.h"

namespace tilefarm::skeleton {

using schedule::Arg;
using schedule::ArgList;
using schedule::Instruction;
using schedule::Rv;
using schedule::RvKind;

namespace {

const Arg* FindArg(const Instruction& instruction, std::string_view name) {
  for (const auto& [key, arg] : instruction.args) {
    if (key == name) return &arg;
  }
  return nullptr;
}

// The items of a list argument, whether they stand one by one or as one
// constant.
std::vector<Arg> Items(const Instruction& instruction, std::string_view name) {
  const Arg* arg = FindArg(instruction, name);
  if (arg == nullptr) return {};
  if (const auto* list = std::get_if<ArgList>(&arg->value)) return *list;
  std::vector<Arg> items;
  if (const auto* attr = std::get_if<ir::Attr>(&arg->value)) {
    if (const ir::AttrList* list = attr->AsList()) {
      for (const ir::Attr& item : *list) items.push_back({item});
    }
  }
  return items;
}

}  // namespace

const Rv* RvArg(const Instruction& instruction, std::string_view name) {
  const Arg* arg = FindArg(instruction, name);
  return arg == nullptr ? nullptr : std::get_if<Rv>(&arg->value);
}

const ir::Attr* ConstArg(const Instruction& instruction,
                         std::string_view name) {
  const Arg* arg = FindArg(instruction, name);
  return arg == nullptr ? nullptr : std::get_if<ir::Attr>(&arg->value);
}

int64_t IntArg(const Instruction& instruction, std::string_view name,
               int64_t otherwise) {
  const ir::Attr* attr = ConstArg(instruction, name);
  return attr == nullptr ? otherwise : attr->AsInt().value_or(otherwise);
}

// --- 3: the instructions ---
absl::Status Builder::Apply(const Instruction& in) {
  const std::string& name = in.primitive;
  if (in.is_sample()) return Sample(in);
  if (name == "get_block" || name == "get_consumers" ||
      name == "get_producers" || name == "get_child_blocks") {
    return NameBlocks(in);
  }
  if (name == "get_loops") return GetLoops(in);
  if (name == "split") return Split(in);
  if (name == "reorder") return Reorder(in);
  if (name == "unroll") return Mark(in, ir::ForKind::kUnrolled);
  if (name == "vectorize") return Mark(in, ir::ForKind::kVectorized);
  if (name == "annotate") return Annotate(in);
  if (name == "cache_read" || name == "cache_write") return Cache(in);
  if (name == "compute_at") return Move(in, /*reverse=*/false);
  if (name == "reverse_compute_at") return Move(in, /*reverse=*/true);
  return Unknown(name);
}

absl::Status Builder::Sample(const Instruction& in) {
  const int site = next_site_++;
  const ir::Attr& decision = decisions_[static_cast<size_t>(site)];
  const bool perfect = in.primitive == "sample_perfect_tile";
  if (perfect || in.primitive == "sample_tile") {
    TF_ASSIGN_OR_RETURN(const int loop, Loop(in, "loop"));
    Value product = out_.formula.Const(1);
    const Value one = product;
    for (size_t i = 0; i < in.outputs.size(); ++i) {
      const Value factor = out_.formula.Factor(site, static_cast<int>(i));
      expr_rvs_[in.outputs[i].id] = factor;
      product = out_.formula.Mul(product, factor);
      Require(one, factor);
    }
    const int64_t innermost = IntArg(in, "max_innermost_factor", 16);
    if (innermost > 0) {
      Require(expr_rvs_[in.outputs.back().id], out_.formula.Const(innermost));
    }
    Require(out_.extents[loop], product, /*equal=*/perfect);
    return absl::OkStatus();
  }
  if (in.primitive == "sample_categorical") {
    std::vector<int64_t> choices;
    for (const Arg& item : Items(in, "candidates")) {
      const auto* attr = std::get_if<ir::Attr>(&item.value);
      const auto value = attr == nullptr ? std::nullopt : attr->AsInt();
      if (!value) return Unknown("candidates that are not integers");
      choices.push_back(*value);
    }
    expr_rvs_[in.outputs[0].id] = out_.formula.Choice(site, std::move(choices));
    return absl::OkStatus();
  }
  if (in.primitive == "sample_compute_location") {
    TF_ASSIGN_OR_RETURN(const int block, Block(in));
    const int64_t location = decision.AsInt().value_or(-1);
    int loop = kNoLoop;
    if (location == -2) {
      loop = kInlined;
    } else if (location >= 0) {
      const std::vector<int> common = CommonLoops(block);
      if (location >= static_cast<int64_t>(common.size())) {
        return Unknown("a location that is no loop");
      }
      loop = common[static_cast<size_t>(location)];
    }
    loop_rvs_[in.outputs[0].id] = loop;
    return absl::OkStatus();
  }
  return Unknown(in.primitive);
}

absl::Status Builder::NameBlocks(const Instruction& in) {
  for (size_t j = 0; j < in.outputs.size(); ++j) {
    std::string name;
    const ir::Attr* given = ConstArg(in, "name");
    if (in.primitive == "get_block" && given != nullptr &&
        given->AsString() != nullptr) {
      name = *given->AsString();
    } else {
      name = NameOf(*whole_, next_, j);
    }
    block_rvs_[in.outputs[j].id] = name;
  }
  return absl::OkStatus();
}

absl::Status Builder::GetLoops(const Instruction& in) {
  TF_ASSIGN_OR_RETURN(const int block, Block(in));
  const std::vector<int>& loops = out_.blocks[block].loops;
  if (loops.size() != in.outputs.size()) {
    return Unknown("another number of loops");
  }
  for (size_t j = 0; j < loops.size(); ++j) {
    loop_rvs_[in.outputs[j].id] = loops[j];
  }
  return absl::OkStatus();
}

absl::Status Builder::Split(const Instruction& in) {
  TF_ASSIGN_OR_RETURN(const int loop, Loop(in, "loop"));
  if (IntArg(in, "preserve_unit_iters", 1) == 0) {
    return Unknown("a split that drops unit loops");
  }
  Formula& f = out_.formula;
  std::vector<std::optional<Value>> factors;
  Value product = f.Const(1);
  for (const Arg& item : Items(in, "factors")) {
    std::optional<Value> factor;
    if (const auto* rv = std::get_if<Rv>(&item.value)) {
      const auto found = expr_rvs_.find(rv->id);
      if (found == expr_rvs_.end()) return Unknown("an unknown factor");
      factor = found->second;
    } else if (const auto* attr = std::get_if<ir::Attr>(&item.value)) {
      if (const auto value = attr->AsInt()) factor = f.Const(*value);
    }
    if (factor) product = f.Mul(product, *factor);
    factors.push_back(factor);
  }
  std::vector<int> parts;
  Value covered = f.Const(1);
  for (const std::optional<Value>& factor : factors) {
    const Value extent =
        factor ? *factor : f.CeilDiv(out_.extents[loop], product);
    parts.push_back(NewLoop(extent));
    covered = f.Mul(covered, extent);
  }
  if (parts.size() != in.outputs.size()) return Unknown("an odd split");
  Require(out_.extents[loop], covered);
  if (IntArg(in, "disable_predication", 0) != 0) {
    Require(covered, out_.extents[loop]);
  }
  for (SketchBlock& block : out_.blocks) {
    const auto at = std::find(block.loops.begin(), block.loops.end(), loop);
    if (at == block.loops.end()) continue;
    block.loops.insert(block.loops.erase(at), parts.begin(), parts.end());
    // A tail is guarded.
    block.guards.push_back({covered, out_.extents[loop], Reduces(block, loop)});
    for (std::vector<Term>& terms : block.bindings) {
      SplitTerms(terms, loop, parts);
    }
  }
  for (size_t j = 0; j < parts.size(); ++j) {
    loop_rvs_[in.outputs[j].id] = parts[j];
  }
  return absl::OkStatus();
}

// Whether a reduce variable of the block moves with the loop.
bool Builder::Reduces(const SketchBlock& block, int loop) const {
  const int info = InfoOf(static_cast<int>(&block - out_.blocks.data()));
  for (size_t i = 0; info >= 0 && i < block.bindings.size(); ++i) {
    if (out_.infos[static_cast<size_t>(info)].iters[i].type ==
        ir::IterType::kSpatial) {
      continue;
    }
    for (const Term& term : block.bindings[i]) {
      if (term.loop == loop) return true;
    }
  }
  return false;
}

void Builder::SplitTerms(std::vector<Term>& terms, int loop,
                         const std::vector<int>& parts) {
  for (size_t t = 0; t < terms.size(); ++t) {
    if (terms[t].loop != loop) continue;
    const Term old = terms[t];
    std::vector<Term> made;
    Value step = old.coefficient;
    for (size_t i = parts.size(); i-- > 0;) {
      made.insert(made.begin(), {parts[i], step, old.vanishes});
      step = out_.formula.Mul(step, out_.extents[parts[i]]);
    }
    terms.erase(terms.begin() + static_cast<ptrdiff_t>(t));
    terms.insert(terms.begin() + static_cast<ptrdiff_t>(t), made.begin(),
                 made.end());
    return;
  }
}

absl::Status Builder::Reorder(const Instruction& in) {
  std::vector<int> wanted;
  for (const Arg& item : Items(in, "loops")) {
    const auto* rv = std::get_if<Rv>(&item.value);
    if (rv == nullptr) return Unknown("an odd reorder");
    const auto found = loop_rvs_.find(rv->id);
    if (found == loop_rvs_.end() || found->second < 0) {
      return Unknown("a loop that is gone");
    }
    wanted.push_back(found->second);
  }
  for (SketchBlock& block : out_.blocks) {
    std::vector<size_t> places;
    for (size_t i = 0; i < block.loops.size(); ++i) {
      if (std::find(wanted.begin(), wanted.end(), block.loops[i]) !=
          wanted.end()) {
        places.push_back(i);
      }
    }
    if (places.empty()) continue;
    // Legal only where every block below the first is below all of them.
    if (places.size() != wanted.size()) return Unknown("a partial reorder");
    for (size_t i = 0; i < places.size(); ++i) {
      block.loops[places[i]] = wanted[i];
    }
  }
  return absl::OkStatus();
}

absl::Status Builder::Mark(const Instruction& in, ir::ForKind kind) {
  TF_ASSIGN_OR_RETURN(const int loop, Loop(in, "loop"));
  out_.kinds[static_cast<size_t>(loop)] = kind;
  return absl::OkStatus();
}

// Annotations of blocks are read off the replayed program.
absl::Status Builder::Annotate(const Instruction& in) {
  const Rv* where = RvArg(in, "block_or_loop");
  const ir::Attr* key = ConstArg(in, "ann_key");
  if (where == nullptr || key == nullptr || key->AsString() == nullptr) {
    return Unknown("an odd annotation");
  }
  if (where->kind != RvKind::kBlock) return Unknown("an annotated loop");
  if (block_rvs_[where->id] != "root") return absl::OkStatus();
  std::optional<Value> value;
  if (const Rv* rv = RvArg(in, "ann_val")) {
    const auto found = expr_rvs_.find(rv->id);
    if (found != expr_rvs_.end()) value = found->second;
  } else {
    const ir::Attr* attr = ConstArg(in, "ann_val");
    const auto number = attr == nullptr ? std::nullopt : attr->AsInt();
    if (number) value = out_.formula.Const(*number);
  }
  if (!value) return Unknown("an annotation that is no integer");
  const std::string& name = *key->AsString();
  if (name == space::kParallel) {
    out_.parallel_jobs = value;
  } else if (name == space::kVectorize) {
    out_.vectorize = value;
  } else if (name == space::kUnrollExplicit) {
    out_.unroll_steps = value;
  } else if (name == space::kStream) {
    // Nothing that features tell.
  } else {
    return Unknown(name);
  }
  return absl::OkStatus();
}

// A copy of a whole buffer: of a parameter before everything, of an output
// after everything.
absl::Status Builder::Cache(const Instruction& in) {
  const bool read = in.primitive == "cache_read";
  const std::string name = NameOf(*whole_, next_, 0);
  const auto found = info_of_.find(name);
  if (found == info_of_.end()) return Unknown("a copy that is gone");
  const BlockInfo& info = out_.infos[static_cast<size_t>(found->second)];
  SketchBlock block;
  const int source = read ? info.reads[0].buffer : info.writes[0].buffer;
  if (out_.buffers[static_cast<size_t>(source)].intermediate) {
    return Unknown("a copy of an intermediate buffer");
  }
  for (const BlockIter& iter : info.iters) {
    block.loops.push_back(NewLoop(out_.formula.Const(iter.extent)));
    block.bindings.push_back(
        {{block.loops.back(), out_.formula.Const(1), false}});
    block.constants.push_back(0);
  }
  const auto at = read ? out_.blocks.begin() : out_.blocks.end();
  const auto name_at = read ? names_.begin() : names_.end();
  out_.blocks.insert(at, std::move(block));
  names_.insert(name_at, name);
  block_rvs_[in.outputs[0].id] = name;
  return absl::OkStatus();
}

}  // namespace tilefarm::skeleton

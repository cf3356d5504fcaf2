#include "cost_model/skeleton/block_info.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/annotations.h"
#include "compiler/schedule/tensor_intrin.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::skeleton {
namespace {

using ir::As;

BlockAccess ReadAccess(const ir::Buffer& buffer,
                       const std::vector<ir::Expr>& indices, bool writes,
                       const VarNumbers& vars, BufferNumbers& buffers) {
  BlockAccess access;
  access.buffer = buffers.Of(buffer);
  access.writes = writes;
  for (const ir::Expr& index : indices) {
    access.indices.push_back(ReadIndex(index, vars));
  }
  return access;
}

bool DifferByConstants(const IndexExpr& a, const IndexExpr& b) {
  if (a.linear && b.linear) return a.terms == b.terms;
  return arith::ExprEqual(a.expr, b.expr);
}

// Joins `load` to the first one that it is alike, if there is one.
bool Join(BlockAccess& load, std::vector<BlockAccess>& accesses) {
  const size_t dims = load.indices.size();
  for (BlockAccess& other : accesses) {
    if (other.buffer != load.buffer || other.writes ||
        other.indices.size() != dims ||
        !std::equal(load.indices.begin(), load.indices.end(),
                    other.indices.begin(), DifferByConstants)) {
      continue;
    }
    other.below.resize(dims);
    other.above.resize(dims);
    for (size_t d = 0; d < dims; ++d) {
      const double shift = load.indices[d].constant - other.indices[d].constant;
      other.below[d] = std::max(other.below[d], -shift);
      other.above[d] = std::max(other.above[d], shift);
    }
    other.alike.push_back(std::move(load));
    return true;
  }
  return false;
}

BlockStore ReadStore(const ir::StoreNode& store, const VarNumbers& vars,
                     BufferNumbers& buffers, bool skips_padding = false) {
  BlockStore out;
  out.accesses.push_back(
      ReadAccess(store.buffer, store.indices, true, vars, buffers));
  cost_model::ValueSummary value =
      skips_padding ? cost_model::SummarizeUnpadded(store)
                    : cost_model::SummarizeValue(store.value);
  out.ops = value.ops;
  for (const ir::LoadNode* load : value.loads) {
    BlockAccess access =
        ReadAccess(load->buffer, load->indices, false, vars, buffers);
    if (!Join(access, out.accesses)) out.accesses.push_back(std::move(access));
  }
  return out;
}

// sum // c and sum % c.
void ReadPart(const ir::Expr& expr, const VarNumbers& vars, IndexExpr& out) {
  const auto* node = As<ir::BinaryNode>(expr);
  if (node == nullptr || (node->op != ir::BinaryOp::kFloorDiv &&
                          node->op != ir::BinaryOp::kFloorMod)) {
    return;
  }
  const int64_t by = ir::AsInt(node->b).value_or(0);
  IndexExpr whole = ReadIndex(node->a, vars);
  if (by < 2 || !whole.linear) return;
  out.terms = std::move(whole.terms);
  out.constant = whole.constant;
  (node->op == ir::BinaryOp::kFloorDiv ? out.divisor : out.modulus) = by;
}

absl::StatusOr<std::vector<BlockRegion>> ReadRegions(
    const std::vector<ir::BufferRegion>& regions, const VarNumbers& vars,
    arith::Analyzer& analyzer, BufferNumbers& buffers) {
  std::vector<BlockRegion> out;
  for (const ir::BufferRegion& region : regions) {
    BlockRegion& read = out.emplace_back();
    read.buffer = buffers.Of(region.buffer);
    for (const ir::Range& range : region.region) {
      // What counts here is where the region lies: v // 8 is 0 for v < 8.
      IndexExpr min = ReadIndex(range.min, vars);
      if (!min.linear) min = ReadIndex(analyzer.Simplify(range.min), vars);
      if (!min.linear) ReadPart(range.min, vars, min);
      min.expr = range.min;
      read.mins.push_back(std::move(min));
      const auto extent = ir::AsInt(range.extent);
      if (!extent) {
        return absl::UnimplementedError("a region of varying width");
      }
      read.extents.push_back(*extent);
    }
  }
  return out;
}

// What features tell of the instruction; those of matrix units have rows, too.
absl::StatusOr<schedule::ProductShape> ReadDotProduct(const ir::Attr& name) {
  const std::string* text = name.AsString();
  TF_ASSIGN_OR_RETURN(const schedule::TensorIntrin* intrin,
                      schedule::FindTensorIntrin(text == nullptr ? "" : *text));
  const auto shape = schedule::ShapeOf(*intrin);
  if (!shape) {
    return absl::UnimplementedError(
        absl::StrCat("the intrinsic ", intrin->name, " is no dot product"));
  }
  return *shape;
}

}  // namespace

bool ReadParts(const ir::Expr& expr, int64_t factor, const VarNumbers& vars,
               std::vector<LoopPart>& parts, int64_t& constant) {
  const auto is_small = [](int64_t x) { return x == static_cast<int32_t>(x); };
  if (const auto value = ir::AsInt(expr)) {
    int64_t product = 0;
    return !__builtin_mul_overflow(factor, *value, &product) &&
           !__builtin_add_overflow(constant, product, &constant);
  }
  if (const auto* var = As<ir::VarNode>(expr)) {
    const auto found = vars.find(var);
    if (found == vars.end()) return false;
    parts.push_back({found->second, factor});
    return true;
  }
  const auto* node = As<ir::BinaryNode>(expr);
  if (node == nullptr) return false;
  if (node->op == ir::BinaryOp::kAdd || node->op == ir::BinaryOp::kSub) {
    const int64_t sign = node->op == ir::BinaryOp::kAdd ? 1 : -1;
    return ReadParts(node->a, factor, vars, parts, constant) &&
           ReadParts(node->b, sign * factor, vars, parts, constant);
  }
  const bool constant_first =
      node->op == ir::BinaryOp::kMul && !ir::AsInt(node->b);
  const ir::Expr& rest = constant_first ? node->b : node->a;
  const auto by = ir::AsInt(constant_first ? node->a : node->b);
  if (!by || !is_small(*by) || !is_small(factor)) return false;
  if (node->op == ir::BinaryOp::kMul) {
    return ReadParts(rest, factor * *by, vars, parts, constant);
  }
  // A digit of one variable.
  const size_t before = parts.size();
  const int64_t constant_before = constant;
  if (*by < 1 || !ReadParts(rest, factor, vars, parts, constant) ||
      parts.size() != before + 1 || parts.back().coefficient != factor ||
      constant != constant_before) {
    return false;
  }
  LoopPart& digit = parts.back();
  if (node->op == ir::BinaryOp::kFloorDiv) {
    digit.lower *= *by;
    return true;
  }
  if (node->op != ir::BinaryOp::kFloorMod || digit.upper != 0) return false;
  digit.upper = digit.lower * *by;
  return true;
}

IndexExpr ReadIndex(const ir::Expr& expr, const VarNumbers& vars) {
  IndexExpr index;
  index.expr = expr;
  std::vector<LoopPart> parts;
  int64_t constant = 0;
  index.linear = ReadParts(expr, 1, vars, parts, constant);
  index.constant = static_cast<double>(constant);
  for (const LoopPart& part : parts) {
    // A variable that comes twice: the order of the two matters to spans.
    index.linear &= !part.is_digit() &&
                    std::ranges::none_of(index.terms, [&](const auto& term) {
                      return term.first == part.loop;
                    });
    index.terms.emplace_back(part.loop, static_cast<double>(part.coefficient));
  }
  return index;
}

BufferNumbers::BufferNumbers(const ir::PrimFunc& function) {
  for (const ir::Buffer& param : function.params) Add(param, false);
}

int BufferNumbers::Add(const ir::Buffer& buffer, bool intermediate) {
  const auto [it, added] =
      numbers_.try_emplace(buffer.get(), static_cast<int>(buffers_.size()));
  if (added) {
    buffers_.push_back({buffer->dtype.bytes(), buffer->shape, intermediate});
  }
  return it->second;
}

int BufferNumbers::Of(const ir::Buffer& buffer) { return Add(buffer, true); }

absl::StatusOr<BlockRegions> ReadBlockRegions(const ir::BlockNode& block,
                                              BufferNumbers& buffers) {
  VarNumbers vars;
  arith::Analyzer analyzer;
  for (const ir::IterVar& iter : block.iters) {
    vars.emplace(iter.var.get(), static_cast<int>(vars.size()));
    analyzer.Bind(iter.var, iter.dom);
  }
  BlockRegions regions;
  TF_ASSIGN_OR_RETURN(regions.reads,
                      ReadRegions(block.reads, vars, analyzer, buffers));
  TF_ASSIGN_OR_RETURN(regions.writes,
                      ReadRegions(block.writes, vars, analyzer, buffers));
  return regions;
}

absl::StatusOr<BlockInfo> ReadBlock(const ir::BlockPtr& block,
                                    BufferNumbers& buffers) {
  const auto not_expressed = [&](const char* what) {
    return absl::UnimplementedError(
        absl::StrCat("block ", block->name, " ", what));
  };
  BlockInfo info;
  info.block = block;
  VarNumbers vars;
  bool reduces = false;
  for (const ir::IterVar& iter : block->iters) {
    vars[iter.var.get()] = static_cast<int>(info.iters.size());
    const auto extent = ir::AsInt(iter.dom.extent);
    if (!extent || !ir::IsConstInt(iter.dom.min, 0)) {
      return not_expressed("has a domain that is not constant from 0");
    }
    info.iters.push_back(
        {iter.type, std::max<int64_t>(*extent, 1), iter.var.get()});
    reduces |= iter.type == ir::IterType::kReduce;
  }
  bool skips_padding = false;
  if (!block->allocs.empty()) return not_expressed("allocates buffers");
  for (const auto& [key, value] : block->annotations) {
    if (key == space::kTilingStructure) {
      info.is_tiled = true;
      info.is_transposed = value == ir::Attr(space::kTransposedTiles);
    } else if (key == space::kPack) {
      info.is_packed = true;
    } else if (key == ir::kPrepack) {
      info.is_prepacked = true;
    } else if (key == space::kAutoTensorize) {
      TF_ASSIGN_OR_RETURN(info.dot, ReadDotProduct(value));
    } else if (key == ir::kPrepackFloat32) {
      // Lowering's alone.
    } else if (key == ir::kSkipPadding) {
      skips_padding = true;
    } else if (key.rfind("meta_schedule.", 0) == 0 ||
               key.rfind("tilefarm.", 0) == 0) {
      // Some postproc will do something about it.
      return absl::UnimplementedError(absl::StrCat(
          "block ", block->name, " has the annotation ", std::string(key)));
    }
  }
  const auto* store = As<ir::StoreNode>(block->body);
  if (store == nullptr) return not_expressed("is more than one store");
  info.body = ReadStore(*store, vars, buffers, skips_padding);
  if (!store->indices.empty()) {
    if (const auto* var = As<ir::VarNode>(ir::LastIndex(store->indices))) {
      const auto found = vars.find(var);
      if (found != vars.end()) info.last_index_iter = found->second;
    }
  }
  if (block->init != nullptr) {
    const auto* init = As<ir::StoreNode>(block->init);
    if (init == nullptr) return not_expressed("has a complicated init");
    info.init = ReadStore(*init, vars, buffers);
    info.is_reduction = reduces;
    if (!reduces) return not_expressed("has an init and no reduction");
  }
  TF_ASSIGN_OR_RETURN(BlockRegions regions, ReadBlockRegions(*block, buffers));
  info.reads = std::move(regions.reads);
  info.writes = std::move(regions.writes);
  if (info.writes.size() != 1) return not_expressed("writes several buffers");
  return info;
}

}  // namespace tilefarm::skeleton

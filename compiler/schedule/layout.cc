// set_scope, storage_align, transform_layout: the memory layout of an
// intermediate buffer. None of them changes what is computed.
//
//   set_scope(C, 0, "shared")      the buffer becomes C_shared of that scope
//   storage_align(C, 0, 0, 32, 8)  strides of dimension 0: 32 * n + 8
//   transform_layout(C, write 0, lambda i, j: (i // 16, j, i % 16))
//
//   C: T.alloc(32, 32)                   C: T.alloc(2, 32, 16)
//   for i, j: C[i, j] = ...         ->   for i, j: C[i // 16, j, i % 16] = ...
//   for i, j: D[i, j] = C[i, j]          for i, j: D[i, j] = C[i // 16, j, ...]
//
// Steps of each: check the arguments and that the buffer is allocated in the
// function (the caller determines a parameter's layout); make the new buffer;
// replace it everywhere below the block that allocates it. transform_layout
// takes only one-to-one maps; gaps are allowed only at the end of a dimension
// that is divided by a number which does not divide its extent.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/dim_align.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/index_map.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {
namespace {

// The block that allocates the buffer.
absl::StatusOr<ir::BlockPtr> OwnAllocation(const ScheduleState& state,
                                           const ir::BlockPtr& block,
                                           const ir::Buffer& buffer) {
  ir::BlockPtr site = state.AllocSite(buffer.get());
  if (site == nullptr) {
    return state.Illegal(block.get(), "buffer ", buffer->name,
                         " is a parameter, whose layout is the "
                         "caller's");
  }
  return site;
}

// Replaces `old_buffer` by another buffer in the block that allocates it.
void ReplaceBuffer(ScheduleState& state, const ir::BlockPtr& site,
                   const ir::Buffer& old_buffer, const ir::Buffer& new_buffer) {
  state.Replace(site.get(),
                ir::ReplaceBuffers(site, {{old_buffer.get(), new_buffer}}));
}

// Moves every access to one buffer through an index map, and recomputes the
// buffer's regions in each block from the accesses.
class LayoutRewriter : public ir::Mutator {
 public:
  LayoutRewriter(ir::Buffer from, ir::Buffer to, const IndexMap& map)
      : from_(std::move(from)), to_(std::move(to)), map_(map) {}
  using Mutator::Mutate;

 protected:
  ir::Buffer MutateBuffer(const ir::Buffer& buffer) override {
    return buffer == from_ ? to_ : buffer;
  }
  ir::Expr MutateLoad(const ir::LoadNode& load, const ir::Expr& self) override {
    if (load.buffer != from_) return Mutator::MutateLoad(load, self);
    return ir::Load(to_, Mapped(load.indices));
  }
  ir::Stmt MutateStore(const ir::StoreNode& store,
                       const ir::Stmt& self) override {
    if (store.buffer != from_) return Mutator::MutateStore(store, self);
    return ir::MakeStore(to_, Mapped(store.indices), Mutate(store.value));
  }
  ir::Stmt MutateFor(const ir::ForNode& loop, const ir::Stmt& self) override {
    analyzer_.Bind(loop.var, ir::Range{loop.min, loop.extent});
    return Mutator::MutateFor(loop, self);
  }
  ir::Stmt MutateBlock(const ir::BlockNode& block,
                       const ir::Stmt& self) override {
    for (const ir::IterVar& iter : block.iters) {
      analyzer_.Bind(iter.var, iter.dom);
    }
    const bool touched = FindRegion(block.reads, from_.get()) != nullptr ||
                         FindRegion(block.writes, from_.get()) != nullptr;
    ir::Stmt result = Mutator::MutateBlock(block, self);
    if (!touched) return result;
    ir::BlockNode copy = *ir::As<ir::BlockNode>(result);
    DropPadding(copy);
    const ir::Accesses accesses = ir::DetectAccesses(copy);
    Refresh(copy.reads, accesses.reads);
    Refresh(copy.writes, accesses.writes);
    return ir::BlockOf(std::move(copy));
  }

 private:
  std::vector<ir::Expr> Mapped(const std::vector<ir::Expr>& indices) {
    std::vector<ir::Expr> result = map_.Apply(MutateAll(indices));
    for (ir::Expr& index : result) index = analyzer_.Simplify(index);
    return result;
  }
  // The new layout has no padding, so its annotation must go, too.
  void DropPadding(ir::BlockNode& block) {
    const auto found = block.annotations.find(ir::kDimAlignKey);
    if (found == block.annotations.end() || found->second.AsList() == nullptr) {
      return;
    }
    ir::AttrList entries = *found->second.AsList();
    std::erase_if(entries, [&](const ir::Attr& entry) {
      const ir::AttrList* list = entry.AsList();
      const auto index = list == nullptr || list->empty()
                             ? std::nullopt
                             : list->front().AsInt();
      return index && *index >= 0 &&
             *index < static_cast<int64_t>(block.writes.size()) &&
             block.writes[*index].buffer == to_;
    });
    if (entries.empty()) {
      block.annotations.erase(found);
    } else {
      found->second = ir::Attr(std::move(entries));
    }
  }
  void Refresh(std::vector<ir::BufferRegion>& regions,
               const std::vector<ir::BufferRegion>& detected) {
    for (ir::BufferRegion& region : regions) {
      if (region.buffer != to_) continue;
      const ir::BufferRegion* found = FindRegion(detected, to_.get());
      region.region = found != nullptr ? found->region : arith::FullRegion(to_);
    }
  }

  ir::Buffer from_, to_;
  const IndexMap& map_;
  arith::Analyzer analyzer_;
};

}  // namespace

absl::Status SetScope(ScheduleState& state, BlockRv block_rv, int buffer_index,
                      std::string_view scope) {
  TF_ASSIGN_OR_RETURN(const auto found,
                      GetBuffer(state, block_rv, /*read=*/false, buffer_index));
  const auto& [block, buffer] = found;
  if (!ir::ParseMemoryScope(scope)) {
    return state.Invalid(block.get(), "unknown storage scope \"",
                         std::string(scope), "\"");
  }
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr site,
                      OwnAllocation(state, block, buffer));
  if (buffer->scope == scope) return absl::OkStatus();
  ir::BufferNode copy = *buffer;
  copy.name =
      FreshBufferName(*state.FunctionOf(block.get()),
                      absl::StrCat(buffer->name, "_", std::string(scope)));
  copy.scope = std::string(scope);
  ReplaceBuffer(state, site, buffer,
                std::make_shared<ir::BufferNode>(std::move(copy)));
  return absl::OkStatus();
}

absl::Status StorageAlign(ScheduleState& state, BlockRv block_rv,
                          int buffer_index, int axis, int factor, int offset) {
  TF_ASSIGN_OR_RETURN(const auto found,
                      GetBuffer(state, block_rv, /*read=*/false, buffer_index));
  const auto& [block, buffer] = found;
  const int ndim = buffer->ndim();
  const int dim = axis < 0 ? axis + ndim : axis;
  if (dim < 0 || dim >= ndim) {
    return state.Invalid(block.get(), "axis ", axis, " is not within [", -ndim,
                         ", ", ndim, ")");
  }
  if (factor <= 0 || offset < 0) {
    return state.Invalid(block.get(), "factor ", factor,
                         " must be positive and offset ", offset,
                         " not negative");
  }
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr site,
                      OwnAllocation(state, block, buffer));

  ir::BufferNode copy = *buffer;
  std::erase_if(copy.dim_align, [&](const std::vector<int64_t>& align) {
    return align[0] == dim;
  });
  copy.dim_align.push_back({dim, factor, offset});
  if (!ir::PaddedStrides(copy)) {
    return state.Invalid(block.get(), "buffer ", buffer->name,
                         " would be too large");
  }
  // In the text, padding is an annotation of the block.
  constexpr const char* kKey = ir::kDimAlignKey;
  ir::AttrList entries;
  if (const auto it = block->annotations.find(kKey);
      it != block->annotations.end() && it->second.AsList() != nullptr) {
    entries = *it->second.AsList();
  }
  const ir::AttrList entry = {ir::Attr(buffer_index), ir::Attr(dim),
                              ir::Attr(factor), ir::Attr(offset)};
  std::erase_if(entries, [&](const ir::Attr& other) {
    const ir::AttrList* list = other.AsList();
    return list != nullptr && list->size() == 4 && (*list)[0] == entry[0] &&
           (*list)[1] == entry[1];
  });
  entries.push_back(ir::Attr(entry));
  ir::BlockNode annotated = *block;
  annotated.annotations[kKey] = ir::Attr(entries);
  const ir::BlockPtr new_block = ir::BlockOf(std::move(annotated));
  state.Replace(block.get(), new_block, {{block.get(), new_block.get()}});
  ReplaceBuffer(state, state.AllocSite(buffer.get()), buffer,
                std::make_shared<ir::BufferNode>(std::move(copy)));
  return absl::OkStatus();
}

absl::Status TransformLayout(ScheduleState& state, BlockRv block_rv, bool read,
                             int buffer_index, std::string_view index_map) {
  TF_ASSIGN_OR_RETURN(const auto found,
                      GetBuffer(state, block_rv, read, buffer_index));
  const auto& [block, buffer] = found;
  auto map = IndexMap::Parse(index_map);
  if (!map.ok()) {
    return state.Invalid(block.get(), std::string(map.status().message()));
  }
  if (map->num_inputs() != buffer->ndim()) {
    return state.Invalid(block.get(), "the index map takes ", map->num_inputs(),
                         " indices, buffer ", buffer->name, " has ",
                         buffer->ndim());
  }
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr site,
                      OwnAllocation(state, block, buffer));
  auto shape = map->OutputShape(buffer->shape);
  if (!shape.ok()) {
    return state.Illegal(block.get(), std::string(shape.status().message()));
  }
  ir::BufferNode copy = *buffer;
  copy.shape = *std::move(shape);
  copy.dim_align.clear();
  const ir::Buffer laid_out = std::make_shared<ir::BufferNode>(std::move(copy));
  state.Replace(site.get(),
                LayoutRewriter(buffer, laid_out, *map).Mutate(site));
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule

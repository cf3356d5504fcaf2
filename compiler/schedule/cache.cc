// cache_read and cache_write: a block works on a copy of a buffer.
//
//   cache_read(C, 0, "global")             cache_write(C, 0, "global")
//
//   for i, k: C reads A                    for i, k: C writes C
//   ->                                     ->
//   for ax0, ax1: A_global: copy           for i, k: C writes C_global
//   for i, k: C reads A_global             for ax0, ax1: C_global: copy
//
// The copy is a block of its own, named after the new buffer, that other
// primitives then move. cache_read redirects every reader in the scope, or the
// consumers that are given; cache_write redirects given ones, too, which then
// read what C wrote without waiting for the copy.
//
// Steps of both:
//   1. Check that at most one block (for cache_write: this one) writes the
//      buffer in the scope, so that one place sees its final value.
//   2. Find the place: for a buffer that comes from outside the start of the
//      scope, else right after the writer, in the innermost body that has a
//      reader too.
//   3. The region to copy is what the writer writes in one iteration there. A
//      copy back to the original buffer must cover only written elements.
//   4. Insert, redirect, allocate.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/cache_block.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {
namespace {

// The position of the block among the children, in program order.
size_t OrderOf(const BlockScope& deps, const ir::BlockNode* block) {
  const auto& children = deps.children();
  for (size_t i = 0; i < children.size(); ++i) {
    if (children[i].get() == block) return i;
  }
  return children.size();
}

ir::Buffer CacheBuffer(const ScheduleState& state, const ir::BlockPtr& block,
                       const ir::Buffer& buffer, std::string_view scope) {
  const std::string name = absl::StrCat(buffer->name, "_", std::string(scope));
  return ir::MakeBuffer(FreshBufferName(*state.FunctionOf(block.get()), name),
                        buffer->dtype, buffer->shape, std::string(scope));
}

// Whether the readers can read a copy of what `writer` writes: they come after
// it, and read nothing else of the buffer.
absl::Status CheckReadersOfWriter(const ScheduleState& state,
                                  const BlockScope& deps,
                                  const ir::BlockPtr& block,
                                  const ir::BlockPtr& writer,
                                  const ir::Buffer& buffer,
                                  const std::vector<ir::BlockPtr>& readers) {
  const bool local = state.AllocSite(buffer.get()) == state.Scope(block.get());
  for (const ir::BlockPtr& reader : readers) {
    if (OrderOf(deps, reader.get()) <= OrderOf(deps, writer.get())) {
      return state.Illegal(block.get(), "block ", reader->name,
                           " reads buffer ", buffer->name, " before block ",
                           writer->name, " has written it");
    }
    if (!local && !IsRegionCovered(state, reader.get())) {
      return state.Illegal(block.get(), "block ", reader->name,
                           " reads elements of buffer ", buffer->name,
                           " that block ", writer->name, " does not write");
    }
  }
  return absl::OkStatus();
}

// Steps 1 and 3 of cache_read for a buffer with a writer in the scope.
absl::Status CheckCacheReadOfWritten(const ScheduleState& state,
                                     const BlockScope& deps,
                                     const ir::BlockPtr& block,
                                     const ir::BlockPtr& writer,
                                     const ir::Buffer& buffer,
                                     const std::vector<ir::BlockPtr>& readers,
                                     const CopyPlace& place) {
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, writer.get()));
  TF_RETURN_IF_ERROR(
      CheckReadersOfWriter(state, deps, block, writer, buffer, readers));
  const bool parallel =
      std::ranges::any_of(place.outer, [](const ir::ForPtr& loop) {
        return loop->for_kind != ir::ForKind::kSerial &&
               loop->for_kind != ir::ForKind::kUnrolled;
      });
  for (const ir::BlockPtr& reader : readers) {
    if (parallel && !state.IsBelow(reader.get(), place.parent.get())) {
      return state.Illegal(
          block.get(), "the copy would be made in a parallel loop and block ",
          reader->name, " reads it outside");
    }
  }
  return absl::OkStatus();
}

// The blocks that `consumers` are, each of which must be one of the readers.
absl::StatusOr<std::vector<ir::BlockPtr>> BlocksAmong(
    const ScheduleState& state, const std::vector<BlockRv>& consumers,
    const std::vector<ir::BlockPtr>& readers, const ir::Buffer& buffer) {
  std::vector<ir::BlockPtr> out;
  for (const BlockRv consumer : consumers) {
    TF_ASSIGN_OR_RETURN(ir::BlockPtr block, state.Get(consumer));
    if (std::ranges::find(readers, block) == readers.end()) {
      return state.Illegal(block.get(), "it does not read buffer ",
                           buffer->name, " in the scope of the block");
    }
    if (std::ranges::find(out, block) == out.end()) {
      out.push_back(std::move(block));
    }
  }
  return out;
}

// Inserts the copy at its place and redirects the accesses of `users` from
// buffer `from` to buffer `to`.
BlockRv InsertCopy(ScheduleState& state, const ir::BlockPtr& scope,
                   const CopyPlace& place, const BlockNest& copy,
                   const std::vector<ir::BlockPtr>& users,
                   const ir::Buffer& from, const ir::Buffer& to) {
  ScopeEditor edit;
  BlockReuse reuse;
  edit.Insert(place.parent.get(), place.position, copy.nest);
  for (const ir::BlockPtr& user : users) {
    const ir::Stmt redirected = ir::ReplaceBuffers(user, {{from.get(), to}});
    reuse.emplace_back(user.get(), ir::As<ir::BlockNode>(redirected));
    edit.Replace(user.get(), redirected);
  }
  edit.AddAlloc(to);
  state.Replace(scope.get(), edit.Apply(*scope), reuse);
  return state.NewBlock(copy.block);
}

}  // namespace

absl::StatusOr<BlockRv> CacheRead(ScheduleState& state, BlockRv block_rv,
                                  int read_buffer_index,
                                  std::string_view storage_scope,
                                  const std::vector<BlockRv>& consumers) {
  TF_ASSIGN_OR_RETURN(
      const auto found,
      GetBuffer(state, block_rv, /*read=*/true, read_buffer_index));
  const auto& [block, buffer] = found;
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, block));
  const BlockScope deps(state, scope.get());
  const std::vector<ir::BlockPtr> writers = deps.Writers(buffer.get());
  if (writers.size() > 1) {
    return state.Illegal(block.get(), "buffer ", buffer->name, " has ",
                         writers.size(), " writers in the scope");
  }
  std::vector<ir::BlockPtr> readers = deps.Readers(buffer.get());
  if (!consumers.empty()) {
    TF_ASSIGN_OR_RETURN(readers,
                        BlocksAmong(state, consumers, readers, buffer));
  }
  CopyPlace place{scope, 0, {}, {}};
  arith::Analyzer analyzer;
  arith::Region region = arith::FullRegion(buffer);
  if (!writers.empty()) {
    const ir::BlockPtr& writer = writers[0];
    place = PlaceAfter(state, scope, writer, readers);
    TF_RETURN_IF_ERROR(CheckCacheReadOfWritten(state, deps, block, writer,
                                               buffer, readers, place));
    BindLoops(analyzer, place.outer);
    region = HullOf(analyzer, *writer,
                    *FindRegion(writer->writes, buffer.get()), place.inner);
    if (place.parent == scope) {
      region = arith::ClipRegion(analyzer, region, buffer->shape);
    }
    if (std::ranges::any_of(
            region, [](const auto& r) { return !ir::AsInt(r.extent); })) {
      region = arith::FullRegion(buffer);
    }
  }
  const ir::Buffer cache = CacheBuffer(state, block, buffer, storage_scope);
  const BlockNest copy =
      MakeCopy(FreshBlockName(state.FunctionOf(block.get())->body, cache->name),
               buffer, cache, region, arith::FullRegion(buffer), analyzer);
  return InsertCopy(state, scope, place, copy, readers, buffer, cache);
}

absl::StatusOr<BlockRv> CacheWrite(ScheduleState& state, BlockRv block_rv,
                                   int write_buffer_index,
                                   std::string_view storage_scope,
                                   const std::vector<BlockRv>& consumers) {
  TF_ASSIGN_OR_RETURN(
      const auto found,
      GetBuffer(state, block_rv, /*read=*/false, write_buffer_index));
  const auto& [block, buffer] = found;
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, block));
  const BlockScope deps(state, scope.get());
  // This ensures that the block is the only writer and never reads old values.
  TF_RETURN_IF_ERROR(CheckCompleteOrReduction(state, deps, block.get()));
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, block.get()));
  std::vector<ir::BlockPtr> readers =
      ReadersOfResult(state, deps, block, buffer.get());
  TF_ASSIGN_OR_RETURN(std::vector<ir::BlockPtr> redirected,
                      BlocksAmong(state, consumers, readers, buffer));
  TF_RETURN_IF_ERROR(
      CheckReadersOfWriter(state, deps, block, block, buffer, redirected));
  std::erase_if(readers, [&](const ir::BlockPtr& reader) {
    return std::ranges::find(redirected, reader) != redirected.end();
  });
  const CopyPlace place = PlaceAfter(state, scope, block, readers);
  arith::Analyzer analyzer;
  BindLoops(analyzer, place.outer);
  const ir::BufferRegion& write = *FindRegion(block->writes, buffer.get());
  arith::Analyzer domain_analyzer;
  auto whole = DenseRegion(write, {}, DomainOf(*block, true), domain_analyzer);
  const auto region =
      DenseRegion(write, BindingsOf(*block), RangesOf(place.inner), analyzer);
  if (!whole.has_value() || !region.has_value() ||
      !PredicateOnlyGuardsDomain(state, *block) ||
      !WritesAll(state, *block, write)) {
    return state.Illegal(block.get(),
                         "it does not surely write every element "
                         "of the region of buffer ",
                         buffer->name, " that would be copied back");
  }
  whole = arith::ClipRegion(domain_analyzer, *whole, buffer->shape);
  const ir::Buffer cache = CacheBuffer(state, block, buffer, storage_scope);
  // At the root of the scope, only the domain bounds the region.
  const BlockNest copy = MakeCopy(
      FreshBlockName(state.FunctionOf(block.get())->body, cache->name), cache,
      buffer,
      place.outer.empty() ? arith::ClipRegion(analyzer, *region, buffer->shape)
                          : *region,
      *whole, analyzer);
  redirected.push_back(block);
  return InsertCopy(state, scope, place, copy, redirected, buffer, cache);
}

}  // namespace tilefarm::schedule

#include "cost_model/nest_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cost_model/store_view.h"

namespace tilefarm::cost_model {
namespace {

std::string KindName(ir::ForKind kind) {
  switch (kind) {
    case ir::ForKind::kParallel:
      return "parallel";
    case ir::ForKind::kVectorized:
      return "vectorized";
    case ir::ForKind::kUnrolled:
      return "unrolled";
    case ir::ForKind::kThreadBinding:
      return "bound to threads";
    default:
      return "serial";
  }
}

std::string FitsIn(double bytes, const target::CacheSizes& caches) {
  if (bytes <= static_cast<double>(caches.l1_bytes)) return "L1";
  if (bytes <= static_cast<double>(caches.l2_bytes)) return "L2";
  if (bytes <= static_cast<double>(caches.l3_bytes)) return "L3";
  return "memory";
}

NestTable TableOf(const LoopNest& nest, const NestStore& store,
                  const NestNames& names, const NestNames::Store& own,
                  const target::CacheSizes& caches) {
  const StoreView view(nest, store);
  NestTable table;
  table.block = own.block;
  table.buffer = names.buffers[static_cast<size_t>(store.accesses[0].buffer)];
  table.is_init = store.is_init;
  double accessed = 0;  // bytes, by one execution of the store
  for (size_t a = 0; a < store.accesses.size(); ++a) {
    const NestAccess& access = store.accesses[a];
    accessed += view.BufferOf(a).element_bytes *
                (access.loads * access.group + (access.writes ? 1 : 0));
  }
  for (size_t d = 0; d <= view.depth(); ++d) {
    if (d < view.depth() && view.loop(d).extent == 1) continue;
    NestRow row;
    if (d < view.depth()) {
      row.loop = absl::StrCat(own.loops[d], " in ", view.loop(d).extent);
      row.kind = KindName(view.loop(d).kind);
    }
    row.runs = view.iterations(0) / view.iterations(d);
    row.bytes = view.total_bytes(d);
    row.reuse = accessed * view.iterations(d) / std::max(row.bytes, 1.0);
    row.fits_in = FitsIn(row.bytes, caches);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::vector<NestTable> NestTables(const LoopNest& nest, const NestNames& names,
                                  const target::CacheSizes& caches) {
  std::vector<NestTable> tables;
  for (size_t i = 0; i < nest.stores.size(); ++i) {
    tables.push_back(
        TableOf(nest, nest.stores[i], names, names.stores[i], caches));
  }
  return tables;
}

}  // namespace tilefarm::cost_model

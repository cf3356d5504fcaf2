// A function on buffers whose dimensions are in another order.
#ifndef TILEFARM_COMPILER_GRAPH_REORDER_DIMS_H_
#define TILEFARM_COMPILER_GRAPH_REORDER_DIMS_H_

#include <unordered_map>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::graph {

// Dimension i of the new order is dimension order[i] of the old one.
using DimOrder = std::vector<int>;
using DimOrders = std::unordered_map<const ir::BufferNode*, DimOrder>;

template <typename T>
std::vector<T> InOrder(const std::vector<T>& items, const DimOrder& order) {
  std::vector<T> result;
  result.reserve(items.size());
  for (const int i : order) result.push_back(items[static_cast<size_t>(i)]);
  return result;
}

// The function that computes the same where the buffers in `orders`, parameters
// or allocations, have their dimensions in these orders. Where a nest of plain
// loops around one block writes such a buffer, its loops follow: those over
// spatial variables take the order of what it writes, reductions that of what
// it reads, so that sums add their terms in another order.
//
//   for n, c, h, w: y[n, c, h, w] = max(x[n, c, h, w], 0)
//   ->  for n, h, w, c: y[n, h, w, c] = max(x[n, h, w, c], 0)
ir::PrimFuncPtr ReorderDims(const ir::PrimFunc& function,
                            const DimOrders& orders);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_REORDER_DIMS_H_

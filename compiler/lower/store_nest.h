// Nests of loops around a single store.
#ifndef TILEFARM_COMPILER_LOWER_STORE_NEST_H_
#define TILEFARM_COMPILER_LOWER_STORE_NEST_H_

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::lower {

// A store in a perfect nest of loops from 0 on, of constant extents.
struct StoreNest {
  std::vector<const ir::ForNode*> loops;
  std::vector<ir::Expr> conditions;
  const ir::StoreNode* store = nullptr;  // null: the nest is something else
};
StoreNest NestOf(ir::Stmt stmt);

// The indices of dimensions with several elements; nullopt if others are not 0.
std::optional<std::vector<ir::Expr>> WideIndices(
    const ir::BufferNode& buffer, const std::vector<ir::Expr>& indices);

// Whether the iterations of the nest, if no condition holds them back, access
// each element of the buffer, and no element twice but for loops that the
// indices do not have. Asks each iteration: for small buffers.
bool CoversBuffer(const StoreNest& nest, const ir::BufferNode& buffer,
                  const std::vector<ir::Expr>& indices);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_STORE_NEST_H_

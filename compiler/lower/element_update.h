// Reductions into one element that several threads share: for
// lower_thread_reductions.cc and spread_over_quads.cc.
#ifndef TILEFARM_COMPILER_LOWER_ELEMENT_UPDATE_H_
#define TILEFARM_COMPILER_LOWER_ELEMENT_UPDATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::lower {

// The update B[i] = B[i] op term of a nest without other statements.
struct ElementUpdate {
  const ir::StoreNode* store = nullptr;
  ir::BinaryOp op = ir::BinaryOp::kAdd;
  ir::Expr term;
  bool element_first = true;
};

// nullopt: the store is no such update by a sum, product, minimum or maximum,
// or its term reads B.
std::optional<ElementUpdate> AsElementUpdate(const ir::StoreNode& store);

// partial[0] = identity, for a buffer of one element.
ir::Stmt StartPartial(const ElementUpdate& update, const ir::Buffer& partial);

// The nest of the update, which adds the terms to partial[0] instead.
ir::Stmt IntoPartial(const ElementUpdate& update, const ir::Buffer& partial,
                     const ir::Stmt& nest);

// partial[0] = partial[0] op other.
ir::Stmt CombinePartial(const ElementUpdate& update, const ir::Buffer& partial,
                        ir::Expr other);

// Combines what `group` consecutive threads of a warp have, a power of two, so
// that all of them get the result.
void CombineInGroup(const ElementUpdate& update, const ir::Buffer& partial,
                    int64_t group, std::vector<ir::Stmt>& stmts);

// B[i] = B[i] op partial[0], in the order of the program's update.
ir::Stmt FinishUpdate(const ElementUpdate& update, const ir::Buffer& partial);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_ELEMENT_UPDATE_H_

// The loop nests of a function, one after another, as tensor expressions make
// them.
#ifndef TILEFARM_COMPILER_GRAPH_NESTS_H_
#define TILEFARM_COMPILER_GRAPH_NESTS_H_

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::graph {

// Loops around one block, which stores to one buffer.
struct Nest {
  ir::Stmt loops;  // or the block itself
  const ir::BlockNode* block = nullptr;
  const ir::StoreNode* store = nullptr;  // the block's body
  std::vector<ir::Buffer> reads;         // each once, without store->buffer
};

// nullopt if the function has other statements, or a buffer is written twice.
std::optional<std::vector<Nest>> NestsOf(const ir::PrimFunc& function);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_NESTS_H_

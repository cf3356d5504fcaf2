// The loop nests of a function, one after another, as tensor expressions make
// them.
#ifndef TILEFARM_COMPILER_GRAPH_NESTS_H_
#define TILEFARM_COMPILER_GRAPH_NESTS_H_

#include <optional>
#include <string>
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

// The factors of a nest that starts from 0 and adds products:
//
//   result[...] = result[...] + a * b
struct Factors {
  ir::Expr a, b;
};
std::optional<Factors> SummedProductOf(const Nest& nest);

// Whether every loop is serial, has no annotations, and is all values of one
// variable of the block, which has no other ones and no predicate.
bool HasPlainLoops(const Nest& nest);

// The loops of the nest around `block`, whose accesses are detected.
ir::Stmt WithBlock(const Nest& nest, ir::BlockNode block);

// A function of these nests, one after another.
ir::PrimFuncPtr FunctionOf(const std::string& name,
                           std::vector<ir::Buffer> params,
                           std::vector<ir::Buffer> allocs,
                           std::vector<ir::Stmt> nests);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_NESTS_H_

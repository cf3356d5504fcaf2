// Where a buffer's memory is, and who sees it.
#ifndef TILEFARM_COMPILER_IR_MEMORY_SCOPE_H_
#define TILEFARM_COMPILER_IR_MEMORY_SCOPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "compiler/ir/expr.h"

namespace tilefarm::ir {

// In the order of who sees it, all first. On a CPU, where lowering decides
// between stack, registers and workspace, every scope is one thread's.
enum class MemoryScope : uint8_t {
  kGlobal,  // all threads
  // Those of the blocks of a cluster: "shared.cluster". The first index is the
  // number of the block in whose shared memory the element is; that block alone
  // writes it.
  kCluster,
  kShared,  // the threads of one block of a GPU: "shared", "shared.dyn"
  kWarp,    // those of one warp
  kLocal,   // one thread
};

// Of each buffer of kShared: enough for every vector access.
inline constexpr int64_t kSharedAlignment = 128;

// nullopt: no scope of the language.
std::optional<MemoryScope> ParseMemoryScope(std::string_view name);

// kGlobal for names that are no scope.
MemoryScope ScopeOf(const BufferNode& buffer);

// Whether it is in the shared memory of one block or of a cluster's.
bool IsInShared(const BufferNode& buffer);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_MEMORY_SCOPE_H_

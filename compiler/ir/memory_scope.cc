#include "compiler/ir/memory_scope.h"

namespace tilefarm::ir {

std::optional<MemoryScope> ParseMemoryScope(std::string_view name) {
  if (name == "global") return MemoryScope::kGlobal;
  if (name == "shared.cluster") return MemoryScope::kCluster;
  if (name == "shared" || name == "shared.dyn") return MemoryScope::kShared;
  if (name == "warp") return MemoryScope::kWarp;
  if (name == "local") return MemoryScope::kLocal;
  return std::nullopt;
}

MemoryScope ScopeOf(const BufferNode& buffer) {
  return ParseMemoryScope(buffer.scope).value_or(MemoryScope::kGlobal);
}

bool IsInShared(const BufferNode& buffer) {
  const MemoryScope scope = ScopeOf(buffer);
  return scope == MemoryScope::kShared || scope == MemoryScope::kCluster;
}

}  // namespace tilefarm::ir

// One function as an LLVM module. Private: has LLVM types.
#ifndef TILEFARM_COMPILER_ORACLE_TRANSLATE_INTERNAL_H_
#define TILEFARM_COMPILER_ORACLE_TRANSLATE_INTERNAL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "llvm/IR/Module.h"

namespace tilefarm::oracle {

struct Translation {
  std::unique_ptr<llvm::Module> module;
  std::vector<bool> bounded;  // as in oracle.h
  int64_t workspace_bytes = 0;
};

absl::StatusOr<Translation> Translate(const ir::PrimFunc& function,
                                      llvm::LLVMContext& context);

}  // namespace tilefarm::oracle

#endif  // TILEFARM_COMPILER_ORACLE_TRANSLATE_INTERNAL_H_

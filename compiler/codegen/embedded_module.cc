#include "compiler/codegen/embedded_module.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Support/MemoryBuffer.h"

namespace tilefarm::codegen {

absl::StatusOr<std::unique_ptr<llvm::Module>> ParseEmbedded(
    std::string_view bitcode, llvm::LLVMContext& context) {
  auto parsed = llvm::parseBitcodeFile(
      llvm::MemoryBufferRef(llvm::StringRef(bitcode.data(), bitcode.size()),
                            "runtime"),
      context);
  if (!parsed) {
    return absl::InternalError(
        absl::StrCat("the embedded runtime does not load: ",
                     llvm::toString(parsed.takeError())));
  }
  return std::move(*parsed);
}

}  // namespace tilefarm::codegen

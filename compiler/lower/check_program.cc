#include "compiler/lower/check_program.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/pipeline.h"
#include "compiler/lower/split_prepack.h"
#include "compiler/target/target.h"

namespace tilefarm::lower {
namespace {

// The last stage that can reject a program. No stage up to it uses more of the
// target than whether it has threads.
constexpr char kLastCheck[] = "iterations";

// Of the kind that the function's loops ask for.
target::Target AnyTarget(const ir::PrimFunc& function) {
  target::Target any;
  ir::PreOrder(function.body, [&](const ir::Stmt& s) {
    const auto* loop = ir::As<ir::ForNode>(s);
    if (loop != nullptr && loop->for_kind == ir::ForKind::kThreadBinding) {
      any.gpu = target::GpuLimits();
    }
    return !any.gpu;
  });
  return any;
}

absl::Status CheckFunction(const ir::PrimFunc& function) {
  TF_ASSIGN_OR_RETURN(const PrepackSplit split, SplitPrepack(function));
  const target::Target any = AnyTarget(function);
  TF_RETURN_IF_ERROR(Lower(*split.packed, any, kLastCheck).status());
  for (const PackedParam& param : split.params) {
    if (param.pack == nullptr) continue;
    TF_RETURN_IF_ERROR(Lower(*param.pack, any, kLastCheck).status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckProgram(const ir::IRModule& module) {
  for (const ir::PrimFuncPtr& function : module.functions) {
    const absl::Status status = CheckFunction(*function);
    if (status.ok()) continue;
    return absl::Status(status.code(), absl::StrCat("function ", function->name,
                                                    ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::IRModule> ReadProgram(std::string_view text,
                                         std::string_view file_name,
                                         const ir::Limits& limits) {
  TF_ASSIGN_OR_RETURN(ir::IRModule module,
                      ir::ParseModule(text, file_name, limits));
  const absl::Status status = CheckProgram(module);
  if (!status.ok()) {
    return absl::Status(
        status.code(),
        absl::StrCat(std::string(file_name), ": error: ", status.message()));
  }
  return module;
}

}  // namespace tilefarm::lower

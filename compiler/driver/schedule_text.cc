#include "compiler/driver/schedule_text.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/codegen/codegen.h"
#include "compiler/driver/lower_function.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {
namespace {

absl::StatusOr<schedule::Schedule> ReplayStored(const StoredSchedule& stored) {
  TF_ASSIGN_OR_RETURN(ir::IRModule module, ir::ParseModule(stored.program));
  TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                      schedule::Trace::Parse(stored.trace));
  return schedule::Replay(trace, std::move(module));
}

}  // namespace

absl::StatusOr<std::string> ScheduledProgram(const StoredSchedule& stored) {
  TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled, ReplayStored(stored));
  return ir::Print(scheduled.module());
}

absl::StatusOr<std::string> Assembly(const StoredSchedule& stored) {
  TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled, ReplayStored(stored));
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::ParseKey(stored.target));
  std::vector<codegen::LoweredFunction> functions;
  for (const ir::PrimFuncPtr& function : scheduled.module().functions) {
    TF_ASSIGN_OR_RETURN(codegen::LoweredFunction lowered,
                        LowerFunction(*function,
                                      function->name == "main" ? "tilefarm_main"
                                                               : function->name,
                                      target));
    functions.push_back(std::move(lowered));
  }
  return codegen::EmitAssembly(functions, {.target = target});
}

}  // namespace tilefarm::driver

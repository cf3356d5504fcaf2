#include "tests/fuzz/check_program.h"

#include "absl/strings/str_cat.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/verifier.h"

namespace tilefarm::fuzz {

Outcome CheckProgram(std::string_view text) {
  Outcome out;
  const auto module = ir::ParseModule(text, "fuzz");
  if (!module.ok()) {
    const std::string message(module.status().message());
    if (module.status().code() != absl::StatusCode::kInvalidArgument ||
        !message.starts_with("fuzz:") ||
        message.find(": error: ") == std::string::npos) {
      out.violation = absl::StrCat("error without a position: ", message);
    }
    return out;
  }
  out.accepted = true;
  if (const absl::Status status = ir::Verify(*module); !status.ok()) {
    out.violation = std::string(status.message());
    return out;
  }
  const std::string printed = ir::Print(*module);
  const auto again = ir::ParseModule(printed, "printed");
  if (!again.ok()) {
    out.violation = absl::StrCat("printed text does not parse: ",
                                 std::string(again.status().message()));
    return out;
  }
  if (ir::Print(*again) != printed) {
    out.violation = "printing is no fixed point";
    return out;
  }
  for (size_t i = 0; i < module->functions.size(); ++i) {
    const ir::PrimFunc& before = *module->functions[i];
    const ir::PrimFunc& after = *again->functions[i];
    if (!ir::StructuralEqual(before, after)) {
      out.violation = "the printed program is another one";
    } else if (ir::WorkloadHash(before) != ir::WorkloadHash(after)) {
      out.violation = "the workload hash changed";
    }
  }
  return out;
}

}  // namespace tilefarm::fuzz

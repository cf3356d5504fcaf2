// Reads and checks the user's input before anything is sent. Errors have file,
// line and column.
#ifndef TILEFARM_SERVER_CLI_INPUT_H_
#define TILEFARM_SERVER_CLI_INPUT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::cli {

struct ProgramInput {
  std::string name;  // of the file, without folders
  std::string text;
  ir::IRModule module;
  // Of a model: how often it calls each function, by name.
  std::map<std::string, double> weights = {};
};

// NotFound: no such file. InvalidArgument: see lower::ReadProgram; too large.
absl::StatusOr<ProgramInput> ReadProgram(const std::string& path);
// The distinct functions of an ONNX model (driver::ReadModelVariants), as one
// program with weights. The target says what its functions may be.
absl::StatusOr<ProgramInput> ReadModelProgram(
    const std::string& path, const std::vector<std::string>& dims,
    const target::Target& target);
// "-" is standard input.
absl::StatusOr<std::string> ReadText(const std::string& path);
// The text of a trace, which is parsed to find errors.
absl::StatusOr<std::string> ReadTrace(const std::string& path);
// The canonical key; "host" becomes this machine.
absl::StatusOr<std::string> ResolveTarget(const std::string& text);
// "90", "90s", "10m", "1h30m", "30d". InvalidArgument.
absl::StatusOr<double> ParseSeconds(const std::string& text);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_INPUT_H_

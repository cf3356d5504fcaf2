#include "server/cli/input.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "compiler/driver/compile_model.h"
#include "compiler/driver/read_model.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/printer.h"
#include "compiler/lower/check_program.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"

namespace tilefarm::cli {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrCat(path, ": is a folder"));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  text << in.rdbuf();
  return text.str();
}

absl::StatusOr<ProgramInput> ReadProgram(const std::string& path) {
  const int64_t limit = ir::Limits().max_text_bytes;
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > static_cast<uintmax_t>(limit)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":1:1: error: the program has ", size,
                     " bytes; at most ", limit, " are taken"));
  }
  ProgramInput input;
  input.name = std::filesystem::path(path).filename().string();
  TF_ASSIGN_OR_RETURN(input.text, ReadText(path));
  TF_ASSIGN_OR_RETURN(input.module, lower::ReadProgram(input.text, path));
  if (input.module.functions.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":1:1: error: there is no function in it"));
  }
  return input;
}

absl::StatusOr<ProgramInput> ReadModelProgram(
    const std::string& path, const std::vector<std::string>& dims,
    const target::Target& target) {
  TF_ASSIGN_OR_RETURN(const driver::ModelVariants variants,
                      driver::ReadModelVariants(path, dims, target));
  ProgramInput input;
  input.name = std::filesystem::path(path).filename().string();
  const driver::ModelKernels kernels =
      driver::ExtractKernels(variants.graphs, target.is_gpu());
  input.module = kernels.module;
  for (size_t i = 0; i < kernels.uses.size(); ++i) {
    input.weights[input.module.functions[i]->name] = kernels.uses[i];
  }
  if (input.module.functions.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the model has nothing to tune"));
  }
  input.text = ir::Print(input.module);
  const int64_t limit = ir::Limits().max_text_bytes;
  if (static_cast<int64_t>(input.text.size()) > limit) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": its functions have ", input.text.size(),
                     " bytes of text; at most ", limit, " are taken"));
  }
  return input;
}

absl::StatusOr<std::string> ReadTrace(const std::string& path) {
  TF_ASSIGN_OR_RETURN(std::string text, ReadText(path));
  const auto trace = schedule::Trace::Parse(text);
  if (!trace.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", trace.status().message()));
  }
  return text;
}

absl::StatusOr<std::string> ResolveTarget(const std::string& text) {
  TF_ASSIGN_OR_RETURN(const target::Target target, target::Parse(text));
  return target.Key();
}

absl::StatusOr<double> ParseSeconds(const std::string& text) {
  constexpr double kDay = 24 * 3600;
  double seconds = 0;
  absl::Duration duration;
  if (text.size() > 1 && text.back() == 'd' &&
      absl::SimpleAtod(text.substr(0, text.size() - 1), &seconds)) {
    seconds *= kDay;
  } else if (!absl::SimpleAtod(text, &seconds)) {
    if (!absl::ParseDuration(text, &duration)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", text, "' is not a time: give seconds, or 90s, 10m, 1h30m, 30d"));
    }
    seconds = absl::ToDoubleSeconds(duration);
  }
  if (!std::isfinite(seconds) || seconds <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a positive time"));
  }
  return seconds;
}

}  // namespace tilefarm::cli

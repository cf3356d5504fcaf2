// The signature of a model as text, which stands where the text of a program
// does: it says what two artifacts both compute.
#ifndef TILEFARM_SERVER_CLI_REGRESS_MODEL_H_
#define TILEFARM_SERVER_CLI_REGRESS_MODEL_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/tilefarm/v1/farm.pb.h"

namespace tilefarm::cli {

// JSON of one line: {"inputs": [["float32", ELEMENTS], ...], "outputs": ...}.
std::string SignatureText(const v1::ModelSignature& model);
// Whether the text is a signature and no program.
bool IsSignature(std::string_view text);
// InvalidArgument: it is none.
absl::StatusOr<v1::ModelSignature> ParseSignature(const std::string& text);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_MODEL_H_

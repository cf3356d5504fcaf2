// The activation functions of recurrent layers. Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_RECURRENT_ACTIVATION_H_
#define TILEFARM_COMPILER_ONNX_RECURRENT_ACTIVATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/node.h"

namespace tilefarm::onnx {

struct RecurrentActivation {
  std::string name;  // in lower case
  double alpha = 0;
  double beta = 0;

  // The function of a float.
  ir::Expr operator()(const ir::Expr& x) const;
};

// The attributes activations, activation_alpha and activation_beta: as many
// functions per direction as `defaults` has, which are used if the first
// attribute is absent.
absl::StatusOr<std::vector<RecurrentActivation>> ReadActivations(
    Node& node, const std::vector<std::string>& defaults, int directions);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_RECURRENT_ACTIVATION_H_

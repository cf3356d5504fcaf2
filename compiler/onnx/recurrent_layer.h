// What RNN, GRU and LSTM share: their inputs, directions, the loop over time
// and the outputs. Private to this folder.
//
// The loop is unrolled: each step is a slice, matrix products and elementwise
// calls, whose programs are the same in all steps. So they are tuned once, the
// products of all steps are ordinary ones, and each call runs in parallel. One
// program with a sequential loop would keep schedules from binding loops to
// the threads of a device, which cannot wait for each other between steps.
#ifndef TILEFARM_COMPILER_ONNX_RECURRENT_LAYER_H_
#define TILEFARM_COMPILER_ONNX_RECURRENT_LAYER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/node.h"

namespace tilefarm::onnx {

struct RecurrentLayer {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t inputs = 0;  // features of each step
  int64_t hidden = 0;
  int directions = 1;
  bool first_is_reverse = false;  // direction="reverse"
  bool batch_first = false;       // layout=1
  ir::DataType dtype;
  ir::DataType type;           // in which gates are computed
  std::optional<double> clip;  // of the inputs of activations

  bool is_reverse(int direction) const {
    return first_is_reverse || direction == 1;
  }
  // `x`, clipped if the layer does so.
  ir::Expr Clip(const ir::Expr& x) const;
};

// Inputs 0 to 5, which all layers have in common, for `gates` gates.
// Unimplemented: too many steps to unroll.
absl::StatusOr<RecurrentLayer> ReadRecurrentLayer(Node& node, int64_t gates);

// Input `i` without its first dimension, at `direction` of it: elements
// [begin, begin + count) of the second dimension.
absl::StatusOr<ValueId> SliceOfDirection(Node& node, int i, int direction,
                                         int64_t begin, int64_t count);

// x [..., K] times weight [N, K]^T in the dtype `type`.
absl::StatusOr<ValueId> TimesTransposed(Node& node, ValueId x, ValueId weight,
                                        ir::DataType type);

// The next states [batch, hidden] from the inputs' part of the gates
// [batch, gates * hidden] and the states before; the first state is the output.
using RecurrentStep = std::function<absl::StatusOr<std::vector<ValueId>>(
    ValueId gates, const std::vector<ValueId>& states)>;

// Runs the layer and returns Y and the last states. `state_inputs`: the inputs
// that have the initial states; they may be absent. `biased`: the gates whose
// input part includes the bias of the recurrence, counted from the first one.
// `step_of` makes the step of a direction.
Outputs RunRecurrentLayer(
    Node& node, const RecurrentLayer& layer, int64_t gates, int64_t biased,
    const std::vector<int>& state_inputs,
    const std::function<absl::StatusOr<RecurrentStep>(int direction)>& step_of);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_RECURRENT_LAYER_H_

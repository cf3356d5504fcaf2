// Random legal ONNX models: 5 to 60 nodes on small float32 tensors, as exported
// networks have them (convolutions with batch norms, attention, norms and
// activations in one node or written out, movement, branches).
#ifndef TILEFARM_TESTS_ONNX_RANDOM_MODEL_H_
#define TILEFARM_TESTS_ONNX_RANDOM_MODEL_H_

#include <cstdint>
#include <string>

namespace tilefarm::onnx {

// A serialised ModelProto, the same for the same seed. Values stay small, and
// no result jumps: rounding in one node changes the outputs only by rounding.
std::string RandomModel(uint64_t seed);

// The number of nodes of a model.
int NodeCount(const std::string& model);
// The model up to its first `nodes` nodes; its outputs are the values that no
// other node reads.
std::string Shortened(const std::string& model, int nodes);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_TESTS_ONNX_RANDOM_MODEL_H_

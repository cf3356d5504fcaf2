// A small ONNX model, as bytes.
#ifndef TILEFARM_TESTS_E2E_SMALL_MODEL_H_
#define TILEFARM_TESTS_E2E_SMALL_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tilefarm::testing {

// --- Messages of ONNX in protobuf's encoding ---

inline std::string Varint(uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7) {
    text += static_cast<char>(value % 128 + 128);
  }
  return text + static_cast<char>(value);
}
inline std::string Number(int field, uint64_t value) {
  return Varint(static_cast<uint64_t>(field) << 3) + Varint(value);
}
inline std::string Field(int field, const std::string& bytes) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(bytes.size()) +
         bytes;
}
inline constexpr int kRows = -1;  // an open dimension
// ValueInfoProto of float32.
inline std::string Value(const std::string& name,
                         const std::vector<int>& shape) {
  std::string dims;
  for (const int dim : shape) {
    dims += Field(1, dim == kRows ? Field(2, "rows")
                                  : Number(1, static_cast<uint64_t>(dim)));
  }
  return Field(1, name) +
         Field(2, Field(1, Number(1, /*FLOAT*/ 1) + Field(2, dims)));
}
// NodeProto.
inline std::string Node(const std::string& op,
                        const std::vector<std::string>& inputs,
                        const std::string& output) {
  std::string text;
  for (const std::string& input : inputs) text += Field(1, input);
  return text + Field(2, output) + Field(4, op);
}

// y = relu(relu(x w) w) v: one kernel runs twice, another one once.
inline std::string TwoKernels(int rows = 32) {
  std::string graph;
  for (const std::string& node :
       {Node("MatMul", {"x", "w"}, "a"), Node("Relu", {"a"}, "b"),
        Node("MatMul", {"b", "w"}, "c"), Node("Relu", {"c"}, "d"),
        Node("MatMul", {"d", "v"}, "y")}) {
    graph += Field(1, node);
  }
  graph += Field(2, "two_kernels");
  for (const std::string& input :
       {Value("x", {rows, 64}), Value("w", {64, 64}), Value("v", {64, 16})}) {
    graph += Field(11, input);
  }
  graph += Field(12, Value("y", {rows, 16}));
  return Number(1, 8) + Field(7, graph) + Field(8, Number(2, 13));
}

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_E2E_SMALL_MODEL_H_

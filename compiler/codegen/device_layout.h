// Where the values of a model are in a device's memory.
//
//   memory of an instance:  intermediate values | inputs | outputs
//   weights, shared by all instances
//
// A step's operand is a part of one of them. It is numbered, because a device
// may have a handle for each part (cl_mem) instead of addresses.
#ifndef TILEFARM_COMPILER_CODEGEN_DEVICE_LAYOUT_H_
#define TILEFARM_COMPILER_CODEGEN_DEVICE_LAYOUT_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "compiler/codegen/model_object.h"

namespace tilefarm::codegen {

class DeviceLayout {
 public:
  struct Part {
    int64_t offset = 0, bytes = 0;
    bool in_weights = false;
  };

  explicit DeviceLayout(const ModelDescription& model);

  int64_t memory_bytes() const { return memory_bytes_; }
  int64_t weights_bytes() const { return weights_bytes_; }
  // In the memory, by number.
  const std::vector<int64_t>& input_offsets() const { return inputs_; }
  const std::vector<int64_t>& output_offsets() const { return outputs_; }

  // The number of the operand's part; equal ones have one.
  int64_t NumberOf(const ModelOperand& operand);
  const std::vector<Part>& parts() const { return parts_; }

 private:
  Part PartOf(const ModelOperand& operand) const;

  int64_t memory_bytes_ = 0, weights_bytes_ = 0;
  std::vector<int64_t> inputs_, outputs_;
  std::vector<Part> parts_;
  std::map<std::tuple<int64_t, int64_t, bool>, int64_t> numbers_;
};

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_DEVICE_LAYOUT_H_

// Writes programs as text: loops whose iterations depend on earlier ones, which
// tensor expressions cannot say. Private to this folder.
//
//   ProgramText program("count_nonzero");
//   program.Parameter("x", {DataType::Float(32), {8}});
//   program.Parameter("count", {DataType::Int(64), {1}});
//   program.Block("count", {8}, "O");
//   program.Line(0, "if x[v0] != 0:");
//   program.Line(1, "count[0] = count[0] + 1");
#ifndef TILEFARM_COMPILER_ONNX_PROGRAM_TEXT_H_
#define TILEFARM_COMPILER_ONNX_PROGRAM_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/graph/graph.h"

namespace tilefarm::onnx {

class ProgramText {
 public:
  explicit ProgramText(std::string name) : name_(std::move(name)) {}

  // Parameters: the inputs, then the outputs. None may be empty.
  void Parameter(const std::string& name, const graph::TensorType& type);
  // A buffer of the program's own.
  void Workspace(const std::string& name, const graph::TensorType& type);

  // Opens a block within loops over `extents`; the lines that follow are its
  // body. `kinds` has 'S' for an axis whose iterations are independent and 'O'
  // for one whose iterations run in order. Returns the axes' variables: v0, v1,
  // and so on.
  std::vector<std::string> Block(const std::string& name,
                                 const std::vector<int64_t>& extents,
                                 std::string_view kinds);
  // A line of the open block, indented by `depth` levels.
  template <typename... Parts>
  void Line(int depth, const Parts&... parts) {
    absl::StrAppend(
        &body_, std::string(static_cast<size_t>(4 * (indent_ + depth)), ' '),
        parts..., "\n");
  }
  // A block that gives all elements of `buffer` one value.
  void Fill(const std::string& buffer, const std::vector<int64_t>& shape,
            const std::string& value);

  std::string Text() const;

 private:
  std::string name_;
  std::string parameters_;
  std::string workspaces_;
  std::string body_;
  int indent_ = 1;
};

// `buffer[i, j]`; `buffer[()]` for rank 0.
std::string Element(const std::string& buffer,
                    const std::vector<std::string>& indices);
// An index in [0, extent) from an integer of any dtype: clamped, after counting
// negative ones from the end if `wrap`.
std::string IndexText(const std::string& value, int64_t extent, bool wrap);
// The number as a constant of the dtype.
std::string ConstText(ir::DataType dtype, int64_t value);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_PROGRAM_TEXT_H_

#include "compiler/onnx/program_text.h"

#include "absl/strings/str_join.h"

namespace tilefarm::onnx {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "),
                      shape.size() == 1 ? ",)" : ")");
}

}  // namespace

void ProgramText::Parameter(const std::string& name,
                            const graph::TensorType& type) {
  absl::StrAppend(&parameters_, "    ", name, ": T.Buffer(",
                  ShapeText(type.shape), ", \"", type.dtype.ToString(),
                  "\"),\n");
}

void ProgramText::Workspace(const std::string& name,
                            const graph::TensorType& type) {
  absl::StrAppend(&workspaces_, "    ", name, " = T.alloc_buffer(",
                  ShapeText(type.shape), ", \"", type.dtype.ToString(),
                  "\")\n");
}

std::vector<std::string> ProgramText::Block(const std::string& name,
                                            const std::vector<int64_t>& extents,
                                            std::string_view kinds) {
  std::vector<std::string> loops, vars;
  for (size_t k = 0; k < extents.size(); ++k) {
    loops.push_back(absl::StrCat("i", k));
    vars.push_back(absl::StrCat("v", k));
  }
  indent_ = 1;
  if (!loops.empty()) {
    Line(0, "for ", absl::StrJoin(loops, ", "), " in T.grid(",
         absl::StrJoin(extents, ", "), "):");
    indent_ = 2;
  }
  Line(0, "with T.block(\"", name, "\"):");
  ++indent_;
  for (size_t k = 0; k < extents.size(); ++k) {
    Line(0, vars[k], " = T.axis.", kinds[k] == 'S' ? "spatial" : "opaque", "(",
         extents[k], ", ", loops[k], ")");
  }
  return vars;
}

void ProgramText::Fill(const std::string& buffer,
                       const std::vector<int64_t>& shape,
                       const std::string& value) {
  const std::vector<std::string> at =
      Block("fill_" + buffer, shape, std::string(shape.size(), 'S'));
  Line(0, Element(buffer, at), " = ", value);
}

std::string ProgramText::Text() const {
  return absl::StrCat("@T.prim_func\ndef ", name_, "(\n", parameters_, "):\n",
                      "    T.func_attr({\"global_symbol\": \"", name_,
                      "\", \"tir.noalias\": True})\n", workspaces_, body_);
}

std::string Element(const std::string& buffer,
                    const std::vector<std::string>& indices) {
  return absl::StrCat(
      buffer, "[", indices.empty() ? "()" : absl::StrJoin(indices, ", "), "]");
}

std::string IndexText(const std::string& value, int64_t extent, bool wrap) {
  std::string index = absl::StrCat("T.Cast(\"int64\", ", value, ")");
  if (wrap) {
    index = absl::StrCat("T.Select(", index, " < 0, ", index, " + ", extent,
                         ", ", index, ")");
  }
  return absl::StrCat("T.max(T.min(", index, ", ", extent - 1, "), 0)");
}

std::string ConstText(ir::DataType dtype, int64_t value) {
  return absl::StrCat("T.", dtype.ToString(), "(", value, ")");
}

}  // namespace tilefarm::onnx

// Parses buffers: types, allocations, matched handles, and views.
//
// A view is another name for elements of a buffer, not a buffer of its own:
// each access through it becomes an access of the buffer itself.
//
//   X = T.match_buffer(A[8:16, 0:4], (8, 4))      X[i, j]  ->  A[8 + i, j]
//   Y = T.decl_buffer((64,), data=M.data)         Y[i]     ->  M[i // 8, i % 8]
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/parser_internal.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

std::vector<int64_t> RowMajor(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * shape[i];
  }
  return strides;
}

bool ReadsABuffer(const std::vector<Expr>& exprs) {
  bool reads = false;
  for (const Expr& expr : exprs) {
    PostOrderExprs(expr,
                   [&](const Expr& e) { reads |= e->kind == ExprKind::kLoad; });
  }
  return reads;
}

}  // namespace

absl::StatusOr<Buffer> Parser::ParseBufferType(const std::string& name) {
  BufferArgs args;
  if (TryOp("(")) {
    TF_ASSIGN_OR_RETURN(args, ParseBufferArgs());
    if (!args.data.empty()) {
      return Error(args.offset, "the data of a parameter is its caller's");
    }
    return BufferOf(name, args);
  }
  // T.Buffer[128, "float32"], T.Buffer[(128, 128), "float32"].
  args.offset = Peek().offset;
  if (!TryOp("[")) {
    return ErrorHere("expected T.Buffer(shape, dtype)");
  }
  if (AtOp("(")) {
    TF_ASSIGN_OR_RETURN(args.shape, ParseShape());
    TF_RETURN_IF_ERROR(NextItem("]"));
  } else {
    args.shape.emplace();
    while (!AtOp("]") && Peek().kind != TokenKind::kString) {
      TF_ASSIGN_OR_RETURN(int64_t extent, ParseDimension());
      args.shape->push_back(extent);
      TF_RETURN_IF_ERROR(NextItem("]"));
    }
  }
  if (!AtOp("]")) {
    TF_ASSIGN_OR_RETURN(args.dtype, ParseDType());
  }
  TryOp(",");
  TF_RETURN_IF_ERROR(Expect("]", "after the buffer type"));
  return BufferOf(name, args);
}

absl::StatusOr<Parser::BufferArgs> Parser::ParseBufferArgs() {
  // In TVM's order.
  static constexpr std::string_view kKeys[] = {
      "shape", "dtype", "data",          "strides",     "elem_offset",
      "scope", "align", "offset_factor", "buffer_type", "axis_separators"};
  BufferArgs args;
  args.offset = Peek().offset;
  size_t position = 0;
  while (!AtOp(")")) {
    std::string key;
    if (Peek().kind == TokenKind::kName && AtOp("=", 1)) {
      key = std::string(Text());
      if (std::find(std::begin(kKeys), std::end(kKeys), key) ==
          std::end(kKeys)) {
        return ErrorHere(
            absl::StrCat("unknown argument '", key, "' of a buffer"));
      }
      at_ += 2;
    } else if (position < std::size(kKeys)) {
      key = std::string(kKeys[position++]);
    } else {
      return ErrorHere("too many arguments of a buffer");
    }
    TF_RETURN_IF_ERROR(ParseBufferArg(key, args));
    TF_RETURN_IF_ERROR(NextItem(")"));
  }
  if (!args.shape) return Error(args.offset, "the buffer needs a shape");
  TF_RETURN_IF_ERROR(Expect(")", "after the buffer's arguments"));
  return args;
}

absl::Status Parser::ParseBufferArg(std::string_view key, BufferArgs& args) {
  const size_t at = Peek().offset;
  if (key == "shape") {
    TF_ASSIGN_OR_RETURN(args.shape, ParseShape());
    return absl::OkStatus();
  }
  if (key == "dtype") {
    TF_ASSIGN_OR_RETURN(args.dtype, ParseDType());
    return absl::OkStatus();
  }
  if (TryName("None")) return absl::OkStatus();
  if (key == "data") {
    TF_ASSIGN_OR_RETURN(args.data, ExpectName("a buffer's .data"));
    args.data_offset = at;
    if (TryOp(".") && !TryName("data")) return ErrorHere("expected 'data'");
    return absl::OkStatus();
  }
  if (key == "strides") {
    TF_ASSIGN_OR_RETURN(args.strides, ParseStrides());
    return absl::OkStatus();
  }
  if (key == "elem_offset") {
    static_context_ = "offsets are static, write the number";
    absl::StatusOr<int64_t> offset = ParseConstInt("the offset");
    static_context_ = {};
    if (!offset.ok()) return offset.status();
    args.elem_offset = *offset;
    return absl::OkStatus();
  }
  if (key == "scope") {
    TF_ASSIGN_OR_RETURN(args.scope, ExpectString("a scope"));
    if (args.scope.empty()) args.scope = "global";
    for (char c : args.scope) {
      if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
          !(c >= '0' && c <= '9') && c != '_' && c != '.') {
        return Error(at, "a scope is a word such as \"shared\"");
      }
    }
    return absl::OkStatus();
  }
  if (key == "align" || key == "offset_factor") {
    // Promises about the caller's pointers, which are not used here.
    return ParseConstInt(key).status();
  }
  if (key == "buffer_type") {
    TF_ASSIGN_OR_RETURN(const std::string type, ExpectString("a type"));
    if (type.empty() || type == "default") return absl::OkStatus();
    return Error(at, absl::StrCat("buffer_type \"", type,
                                  "\" is not supported; write the strides"));
  }
  // axis_separators, if empty
  if (TryOp("[") && TryOp("]")) return absl::OkStatus();
  return Error(at, "axis_separators are not supported; buffers are flat");
}

absl::StatusOr<std::vector<int64_t>> Parser::ParseStrides() {
  if (!AtOp("(") && !AtOp("[")) return ErrorHere("expected a list of strides");
  const std::string_view close = AtOp("(") ? ")" : "]";
  ++at_;
  std::vector<int64_t> strides;
  while (!AtOp(close)) {
    static_context_ = "strides are static, write the number";
    absl::StatusOr<int64_t> stride = ParseConstInt("a stride");
    static_context_ = {};
    if (!stride.ok()) return stride.status();
    strides.push_back(*stride);
    TF_RETURN_IF_ERROR(NextItem(close));
  }
  ++at_;
  return strides;
}

absl::StatusOr<int64_t> Parser::ParseDimension() {
  const size_t offset = Peek().offset;
  static_context_ = "shapes are static, write the number";
  absl::StatusOr<int64_t> extent = ParseConstInt("a dimension");
  static_context_ = {};
  if (extent.ok() && *extent < 1) {
    return Error(offset, absl::StrCat("dimension ", *extent,
                                      "; extents are at least 1"));
  }
  return extent;
}

absl::StatusOr<std::vector<int64_t>> Parser::ParseShape() {
  std::vector<int64_t> shape;
  if (!AtOp("(") && !AtOp("[")) {
    TF_ASSIGN_OR_RETURN(int64_t extent, ParseDimension());
    shape.push_back(extent);
    return shape;
  }
  const std::string_view close = AtOp("(") ? ")" : "]";
  ++at_;
  while (!AtOp(close)) {
    TF_ASSIGN_OR_RETURN(int64_t extent, ParseDimension());
    shape.push_back(extent);
    TF_RETURN_IF_ERROR(NextItem(close));
  }
  ++at_;
  return shape;
}

absl::StatusOr<Buffer> Parser::BufferOf(std::string name,
                                        const BufferArgs& args) {
  BufferNode buffer{.name = std::move(name),
                    .dtype = args.dtype.value_or(DataType::Float(32)),
                    .shape = *args.shape,
                    .scope = args.scope};
  const auto bad = [&](const std::string& what) {
    return Error(args.offset,
                 absl::StrCat("buffer '", buffer.name, "' ", what));
  };
  if (buffer.ndim() > limits_.max_dims) {
    return bad(absl::StrCat("has ", buffer.ndim(), " dimensions; the limit is ",
                            limits_.max_dims));
  }
  const auto too_large = [&] {
    const std::optional<int64_t> bytes = MemoryBytes(buffer);
    return !bytes || *bytes > limits_.max_buffer_bytes;
  };
  const std::string limit = absl::StrCat("is too large; the limit is ",
                                         limits_.max_buffer_bytes, " bytes");
  if (too_large()) return bad(limit);
  if (args.strides && !args.strides->empty()) {
    if (args.strides->size() != buffer.shape.size()) {
      return bad(absl::StrCat("has ", buffer.ndim(), " dimensions and ",
                              args.strides->size(), " strides"));
    }
    buffer.strides = *args.strides;
    // Normalise: the stride of a dimension of extent 1 has no meaning.
    for (size_t i = buffer.shape.size(); i-- > 0;) {
      if (buffer.strides[i] < 0) {
        return bad("has a negative stride; strides are from 0 on");
      }
      if (buffer.shape[i] > 1) continue;
      const bool last = i + 1 == buffer.shape.size();
      if (last ||
          __builtin_mul_overflow(buffer.strides[i + 1], buffer.shape[i + 1],
                                 &buffer.strides[i])) {
        buffer.strides[i] = 1;
      }
    }
    if (buffer.strides == RowMajor(buffer.shape)) buffer.strides.clear();
  }
  if (args.elem_offset.value_or(0) < 0) {
    return bad("has a negative elem_offset; offsets are from 0 on");
  }
  buffer.elem_offset = args.elem_offset.value_or(0);
  if (too_large()) return bad(limit);
  return std::make_shared<const BufferNode>(std::move(buffer));
}

absl::Status Parser::DeclareBuffer(const std::string& name, size_t offset,
                                   Buffer buffer,
                                   std::shared_ptr<const View> view) {
  Symbol symbol{Symbol::kBuffer};
  symbol.buffer = std::move(buffer);
  symbol.view = std::move(view);
  return Declare(name, offset, std::move(symbol));
}

absl::Status Parser::Allocate(const std::string& name, size_t offset,
                              const BufferArgs& args) {
  TF_ASSIGN_OR_RETURN(Buffer buffer, BufferOf(name, args));
  if (!buffer->is_dense()) {
    return Error(args.offset,
                 absl::StrCat("'", name,
                              "' is the function's own: it has no "
                              "strides or elem_offset; parameters may"));
  }
  TF_RETURN_IF_ERROR(DeclareBuffer(name, offset, buffer));
  blocks_.back()->node.allocs.push_back(std::move(buffer));
  return absl::OkStatus();
}

absl::Status Parser::ParseAllocBuffer(const std::string& name, size_t offset) {
  TF_RETURN_IF_ERROR(RequireBlockLevel(offset, "T.alloc_buffer"));
  TF_RETURN_IF_ERROR(Expect("(", "for the buffer"));
  TF_ASSIGN_OR_RETURN(const BufferArgs args, ParseBufferArgs());
  if (!args.data.empty()) {
    return Error(args.data_offset,
                 "T.alloc_buffer makes memory; T.decl_buffer names some");
  }
  return Allocate(name, offset, args);
}

// T.allocate([16], "float32", "global"): like T.alloc_buffer, but allowed at
// any place in a block.
absl::Status Parser::ParseAllocate(const std::string& name, size_t offset) {
  TF_RETURN_IF_ERROR(Expect("(", "for the buffer"));
  BufferArgs args;
  args.offset = Peek().offset;
  TryKeyword({"extents"});
  TF_ASSIGN_OR_RETURN(args.shape, ParseShape());
  TF_RETURN_IF_ERROR(Expect(",", "and the dtype"));
  TryKeyword({"dtype"});
  TF_ASSIGN_OR_RETURN(args.dtype, ParseDType());
  if (TryOp(",") && !AtOp(")")) {
    TryKeyword({"scope"});
    TF_RETURN_IF_ERROR(ParseBufferArg("scope", args));
    TryOp(",");
  }
  TF_RETURN_IF_ERROR(Expect(")", "after extents, dtype and scope"));
  return Allocate(name, offset, args);
}

// T.decl_buffer without data allocates memory of the function. With data,
// T.decl_buffer, T.buffer_decl and T.Buffer declare another shape for the
// memory of another buffer.
absl::Status Parser::ParseDeclBuffer(const Callee& callee,
                                     const std::string& name, size_t offset) {
  TF_RETURN_IF_ERROR(Expect("(", "for the buffer"));
  TF_ASSIGN_OR_RETURN(BufferArgs args, ParseBufferArgs());
  if (args.data.empty() && callee.name == "decl_buffer") {
    return Allocate(name, offset, args);
  }
  if (args.data.empty()) {
    return Error(args.offset,
                 absl::StrCat("T.", callee.name,
                              " in a body needs data=; T.alloc_buffer makes "
                              "memory"));
  }
  const Symbol* symbol = Lookup(args.data);
  if (symbol == nullptr || symbol->kind != Symbol::kBuffer) {
    return Error(args.data_offset,
                 absl::StrCat("'", args.data, "' is no buffer"));
  }
  const Buffer base = symbol->buffer;
  if (symbol->view != nullptr || !base->is_dense()) {
    return Error(args.data_offset,
                 absl::StrCat("'", args.data,
                              "' is not dense memory of its "
                              "own; name the elements of the buffer itself"));
  }
  if (!args.dtype) args.dtype = base->dtype;
  TF_ASSIGN_OR_RETURN(Buffer shape, BufferOf(name, args));
  if (shape->dtype != base->dtype) {
    return Error(
        args.offset,
        absl::StrCat("'", name, "' of ", shape->dtype.ToString(),
                     " cannot name elements of ", base->dtype.ToString()));
  }
  if (shape->memory_elements() > base->num_elements()) {
    return Error(args.offset,
                 absl::StrCat("'", name, "' reaches over ",
                              shape->memory_elements(), " elements, but '",
                              args.data, "' has ", base->num_elements()));
  }
  if (shape->is_dense() && shape->shape == base->shape) {
    return DeclareBuffer(name, offset, base);
  }
  return DeclareBuffer(name, offset, std::move(shape),
                       std::make_shared<const View>(View{base, {}}));
}

absl::Status Parser::ParseMatchBuffer(const std::string& name, size_t offset) {
  TF_RETURN_IF_ERROR(Expect("(", "for the handle"));
  TryKeyword({"param"});
  const size_t handle_at = Peek().offset;
  const Symbol* symbol =
      Peek().kind == TokenKind::kName ? Lookup(Text()) : nullptr;
  if (symbol != nullptr && symbol->kind == Symbol::kBuffer) {
    return ParseMatchRegion(name, offset);
  }
  TF_ASSIGN_OR_RETURN(std::string handle, ExpectName("a handle"));
  if (symbol == nullptr || symbol->kind != Symbol::kHandle) {
    return Error(handle_at,
                 absl::StrCat("'", handle, "' is no T.handle parameter"));
  }
  const size_t index = symbol->param_index;
  if (function_->params[index] != nullptr) {
    return Error(handle_at,
                 absl::StrCat("the handle '", handle, "' is matched twice"));
  }
  TF_RETURN_IF_ERROR(Expect(",", "after the handle"));
  TF_ASSIGN_OR_RETURN(const BufferArgs args, ParseBufferArgs());
  if (!args.data.empty()) {
    return Error(args.data_offset, "the data of a handle is its caller's");
  }
  TF_ASSIGN_OR_RETURN(Buffer buffer, BufferOf(name, args));
  TF_RETURN_IF_ERROR(DeclareBuffer(name, offset, buffer));
  // A match in an inner suite would go out of scope, so handles are matched at
  // the function's own level only.
  if (blocks_.size() != 1 || suite_depth_ != blocks_[0]->suite_depth) {
    return Error(offset, "T.match_buffer belongs at the start of the function");
  }
  function_->params[index] = std::move(buffer);
  return absl::OkStatus();
}

absl::Status Parser::ParseMatchRegion(const std::string& name, size_t offset) {
  const size_t region_at = Peek().offset;
  TF_ASSIGN_OR_RETURN(const std::optional<BufferRegion> region, ParseRegion());
  if (!region) return Error(region_at, "a view of a view is not supported");
  TF_RETURN_IF_ERROR(Expect(",", "after the region"));
  TF_ASSIGN_OR_RETURN(BufferArgs args, ParseBufferArgs());
  if (!args.data.empty() || args.strides || args.elem_offset) {
    return Error(args.offset,
                 "data, strides and offset of a region are those of its "
                 "buffer");
  }
  const Buffer& base = region->buffer;
  if (!args.dtype) args.dtype = base->dtype;
  args.scope = base->scope;
  TF_ASSIGN_OR_RETURN(Buffer shape, BufferOf(name, args));
  std::vector<int64_t> extents;
  std::vector<Expr> starts;
  for (const Range& range : region->region) {
    const auto extent = AsInt(range.extent);
    if (!extent) {
      return Error(region_at, "the extents of a matched region are constants");
    }
    extents.push_back(*extent);
    starts.push_back(range.min);
  }
  // Leading dimensions of extent 1 may be omitted.
  const size_t lead =
      extents.size() - std::min(extents.size(), shape->shape.size());
  const bool fits =
      std::all_of(extents.begin(), extents.begin() + static_cast<long>(lead),
                  [](int64_t extent) { return extent == 1; }) &&
      std::equal(extents.begin() + static_cast<long>(lead), extents.end(),
                 shape->shape.begin(), shape->shape.end());
  if (!fits || shape->dtype != base->dtype) {
    return Error(args.offset,
                 absl::StrCat("the region of '", base->name, "' is of ",
                              base->dtype.ToString(), " and has the extents (",
                              absl::StrJoin(extents, ", "), ")"));
  }
  return DeclareBuffer(
      name, offset, std::move(shape),
      std::make_shared<const View>(View{base, std::move(starts)}));
}

// T.preflattened_buffer(A, (8, 8), data=A.data): the shape of A before it was
// flattened. It does not affect accesses.
absl::Status Parser::ParsePreflattened() {
  TF_RETURN_IF_ERROR(Expect("(", "for the buffer"));
  const size_t at = Peek().offset;
  TF_ASSIGN_OR_RETURN(const std::string name, ExpectName("a buffer"));
  const Symbol* symbol = Lookup(name);
  if (symbol == nullptr || symbol->kind != Symbol::kBuffer) {
    return Error(at, absl::StrCat("'", name, "' is no buffer"));
  }
  const Buffer flat = symbol->buffer;
  TF_RETURN_IF_ERROR(Expect(",", "after the buffer"));
  TF_ASSIGN_OR_RETURN(const BufferArgs args, ParseBufferArgs());
  TF_ASSIGN_OR_RETURN(const Buffer shaped, BufferOf(name, args));
  if (shaped->memory_elements() != flat->memory_elements()) {
    return Error(args.offset,
                 absl::StrCat("'", name, "' has ", flat->memory_elements(),
                              " elements, not ", shaped->memory_elements()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Parser::Access> Parser::ParseAccess(const Symbol& symbol,
                                                   int* depth) {
  const size_t offset = Peek().offset;
  const Buffer shape = symbol.buffer;
  const std::shared_ptr<const View> view = symbol.view;
  TF_ASSIGN_OR_RETURN(std::vector<Expr> indices, ParseIndices(shape, depth));
  if (view == nullptr) return Access{shape, std::move(indices)};
  Access out{view->base, {}};
  if (!view->starts.empty()) {
    out.indices = view->starts;
    const size_t lead = out.indices.size() - indices.size();
    for (size_t i = 0; i < indices.size(); ++i) {
      out.indices[lead + i] = out.indices[lead + i] + indices[i];
    }
  } else {
    const std::vector<int64_t>& extents = view->base->shape;
    // The index is repeated for each dimension.
    if (extents.size() > 1 && ReadsABuffer(indices)) {
      return Error(offset, absl::StrCat("an index of '", shape->name,
                                        "' reads a buffer; index '",
                                        view->base->name, "' itself"));
    }
    const std::vector<int64_t> steps =
        shape->strides.empty() ? RowMajor(shape->shape) : shape->strides;
    Expr place = IntConst(shape->elem_offset);
    for (size_t i = 0; i < indices.size(); ++i) {
      place = place + indices[i] * steps[i];
    }
    const std::vector<int64_t> strides = RowMajor(extents);
    for (size_t i = 0; i < extents.size(); ++i) {
      Expr index = FloorDiv(place, IntConst(strides[i]));
      if (i > 0) index = FloorMod(std::move(index), IntConst(extents[i]));
      out.indices.push_back(std::move(index));
    }
  }
  *depth += 2 * shape->ndim() + 2;
  if (*depth > limits_.max_nesting) {
    return Error(offset, absl::StrCat("the expression nests deeper than ",
                                      limits_.max_nesting, " levels"));
  }
  for (const Expr& index : out.indices) {
    absl::Status status;
    PostOrderExprs(index, [&](const Expr&) {
      if (status.ok()) status = CountNode();
    });
    TF_RETURN_IF_ERROR(status);
  }
  return out;
}

}  // namespace tilefarm::ir

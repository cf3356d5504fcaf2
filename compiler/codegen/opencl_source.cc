// Kernels and statements.
#include "compiler/codegen/opencl_source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/codegen/expr_facts.h"
#include "compiler/codegen/opencl_emitter.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::codegen {
namespace {

constexpr char kRounding[] = "_rte";

}  // namespace

void OpenClEmitter::Line(std::string_view text) {
  text_.append(static_cast<size_t>(2 * depth_), ' ');
  text_ += text;
  text_ += '\n';
}

// No name of OpenCL C ends like these.
std::string OpenClEmitter::NewName(std::string_view name) {
  std::string base;
  for (const char c : name) {
    base += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) {
    base.insert(0, "v");
  }
  base += '_';
  std::string unique = base;
  for (int i = 2; !names_.insert(unique).second; ++i) {
    unique = absl::StrCat(base, i);
  }
  return unique;
}

std::string OpenClEmitter::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return "0";
}

absl::StatusOr<std::string> OpenClEmitter::EmitKernel(
    const NamedKernel& named) {
  const lower::Kernel& kernel = named.kernel;
  status_ = absl::OkStatus();
  text_.clear();
  depth_ = 0;
  names_.clear();
  memory_.clear();
  vars_.clear();
  lanes_.clear();
  math_ = std::make_unique<arith::IndexMath>();
  if (!kernel.maps.empty()) {
    return absl::InvalidArgumentError(
        "OpenCL C has no copies of boxes of tensors");
  }
  std::set<const ir::BufferNode*> written;
  ir::PreOrder(kernel.body, [&](const ir::Stmt& s) {
    if (const auto* store = ir::As<ir::StoreNode>(s)) {
      written.insert(store->buffer.get());
    }
    return true;
  });
  std::vector<std::string> params;
  for (const ir::Buffer& buffer : kernel.buffers) {
    Memory& memory = memory_[buffer.get()];
    memory = {NewName(buffer->name), "__global", /*aligned=*/true};
    params.push_back(absl::StrCat(
        "__global ", written.contains(buffer.get()) ? "" : "const ",
        OpenClMemoryType(buffer->dtype), "* restrict ", memory.name));
    has_double_ |= buffer->dtype == ir::DataType::Float(64);
  }
  std::array<int64_t, 3> threads = {1, 1, 1};
  for (const lower::KernelAxis& axis : kernel.axes) {
    if (!ir::IsThreadIdx(axis.axis)) continue;
    threads[static_cast<size_t>(DimensionOf(axis.axis))] = axis.extent;
  }
  Line(absl::StrCat("__kernel __attribute__((reqd_work_group_size(",
                    absl::StrJoin(threads, ", "), ")))"));
  Line(absl::StrCat("void ", named.name, "(", absl::StrJoin(params, ", "),
                    ") {"));
  ++depth_;
  for (const lower::KernelAxis& axis : kernel.axes) {
    math_->Bind(axis.var.get(), 0, axis.extent - 1);
    const std::string name = NewName(axis.var->name);
    vars_[axis.var.get()] = {name, /*narrow=*/true};
    Line(absl::StrCat(
        "const int ", name, " = (int)",
        ir::IsThreadIdx(axis.axis) ? "get_local_id(" : "get_group_id(",
        DimensionOf(axis.axis), ");"));
  }
  EmitAllocations(kernel);
  EmitStmt(kernel.body);
  --depth_;
  Line("}");
  math_.reset();
  hoisted_.clear();
  kept_.clear();
  TF_RETURN_IF_ERROR(status_);
  return std::move(text_);
}

// Local memory may be declared at the top of a kernel alone; private memory is
// there as well.
void OpenClEmitter::EmitAllocations(const lower::Kernel& kernel) {
  ir::PreOrder(kernel.body, [&](const ir::Stmt& s) {
    const auto* alloc = ir::As<ir::AllocNode>(s);
    if (alloc == nullptr) return true;
    const ir::Buffer& buffer = alloc->buffer;
    const bool shared = ir::ScopeOf(*buffer) == ir::MemoryScope::kShared;
    Memory& memory = memory_[buffer.get()];
    memory = {NewName(buffer->name), shared ? "__local" : "__private", shared};
    has_double_ |= buffer->dtype == ir::DataType::Float(64);
    Line(absl::StrCat(shared ? "__local " : "", OpenClMemoryType(buffer->dtype),
                      " ", memory.name, "[", buffer->num_elements(), "]",
                      shared ? absl::StrCat(" __attribute__((aligned(",
                                            kDeviceAlignment, ")))")
                             : "",
                      ";"));
    return true;
  });
}

void OpenClEmitter::EmitStmt(const ir::Stmt& stmt) {
  if (!status_.ok()) return;
  switch (stmt->kind) {
    case ir::StmtKind::kStore:
      return EmitStore(*ir::As<ir::StoreNode>(stmt));
    case ir::StmtKind::kFor:
      return EmitFor(*ir::As<ir::ForNode>(stmt));
    case ir::StmtKind::kSeq:
      for (const ir::Stmt& child : ir::As<ir::SeqNode>(stmt)->stmts) {
        EmitStmt(child);
      }
      return;
    case ir::StmtKind::kIf:
      return EmitIf(*ir::As<ir::IfNode>(stmt));
    case ir::StmtKind::kLetStmt: {
      const auto* let = ir::As<ir::LetStmtNode>(stmt);
      Define(let->var, let->value);
      return EmitStmt(let->body);
    }
    case ir::StmtKind::kAlloc:
      return EmitStmt(ir::As<ir::AllocNode>(stmt)->body);
    case ir::StmtKind::kEvaluate: {
      const auto* op =
          ir::As<ir::MachineOpNode>(ir::As<ir::EvaluateNode>(stmt)->value);
      // Expressions of the language have no effects.
      if (op == nullptr || op->op == ir::MachineOp::kPrefetch) return;
      if (op->op == ir::MachineOp::kBarrier) {
        return Line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
      }
      // Copies are done when they are started.
      if (op->op == ir::MachineOp::kCommit || op->op == ir::MachineOp::kWait) {
        return;
      }
      Fail(absl::InvalidArgumentError(absl::StrCat(
          "OpenCL C has no T.", std::string(ir::MachineOpName(op->op)))));
      return;
    }
    case ir::StmtKind::kBlock:
      Fail(absl::InternalError("a block was left by lowering"));
      return;
  }
}

void OpenClEmitter::Define(const ir::Var& var, const ir::Expr& value) {
  if (var->dtype.is_vector()) {
    for (int lane = 0; lane < var->dtype.lanes; ++lane) {
      Define(LanesOf(*var)[static_cast<size_t>(lane)], Lane(value, lane));
    }
    return;
  }
  const Value made = Emit(value);
  const std::string name = NewName(var->name);
  const bool narrow = var->dtype.is_index() && made.narrow;
  Line(absl::StrCat("const ", narrow ? "int" : OpenClType(var->dtype), " ",
                    name, " = ", made.text, ";"));
  if (var->dtype.is_index()) {
    const arith::Interval bounds = math_->Bounds(value);
    if (bounds.bounded()) math_->Bind(var.get(), bounds.lo, bounds.hi);
  }
  vars_[var.get()] = {name, narrow};
}

std::string OpenClEmitter::Keep(ir::DataType dtype, const std::string& text) {
  const std::string name = NewName("t");
  Line(absl::StrCat("const ", OpenClType(dtype), " ", name, " = ", text, ";"));
  return name;
}

void OpenClEmitter::EmitFor(const ir::ForNode& loop) {
  if (loop.for_kind != ir::ForKind::kSerial &&
      loop.for_kind != ir::ForKind::kUnrolled) {
    Fail(absl::InternalError(
        absl::StrCat("loop ", loop.var->name, " was left by lowering")));
    return;
  }
  if (const auto count = ir::AsInt(loop.extent); count && *count <= 0) return;
  const size_t mark = math_->Mark();
  const Value min = Emit(loop.min);
  const Value end = Emit(loop.min + loop.extent);
  const arith::Interval first = math_->Bounds(loop.min);
  const arith::Interval count = math_->Bounds(loop.extent);
  if (first.bounded() && count.has_hi()) {
    math_->Bind(loop.var.get(), first.lo, first.hi + count.hi - 1);
  }
  const bool narrow = min.narrow && end.narrow;
  const std::string name = NewName(loop.var->name);
  vars_[loop.var.get()] = {name, narrow};
  Line(absl::StrCat("for (", narrow ? "int " : "long ", name, " = ", min.text,
                    "; ", name, " < ", end.text, "; ++", name, ") {"));
  ++depth_;
  EmitStmt(loop.body);
  --depth_;
  Line("}");
  math_->Restore(mark);
}

void OpenClEmitter::EmitIf(const ir::IfNode& branch) {
  Line(absl::StrCat("if (", Text(branch.condition), ") {"));
  const size_t mark = math_->Mark();
  math_->Assume(branch.condition);
  ++depth_;
  EmitStmt(branch.then_case);
  --depth_;
  math_->Restore(mark);
  if (branch.else_case != nullptr) {
    Line("} else {");
    math_->AssumeNot(branch.condition);
    ++depth_;
    EmitStmt(branch.else_case);
    --depth_;
    math_->Restore(mark);
  }
  Line("}");
}

void OpenClEmitter::EmitStore(const ir::StoreNode& store) {
  // The store itself rounds.
  const auto* cast = ir::As<ir::CastNode>(store.value);
  const bool rounds = cast != nullptr && RoundsTo16Bits(*cast) &&
                      cast->value->dtype.element() == ir::DataType::Float(32);
  const ir::StoreNode s(store.buffer, store.indices,
                        rounds ? cast->value : store.value, store.predicate);
  if (s.indices.size() != 1) {
    Fail(absl::InternalError(
        absl::StrCat("buffer ", s.buffer->name, " was not flattened")));
    return;
  }
  hoisted_.clear();
  const int lanes = s.indices[0]->dtype.lanes;
  // A scalar predicate also guards the evaluation of the value.
  if (s.predicate != nullptr && ir::AsUniformInt(s.predicate) != 1 &&
      !s.predicate->dtype.is_vector()) {
    return EmitIf(
        ir::IfNode(s.predicate, ir::MakeStore(s.buffer, s.indices, s.value)));
  }
  const bool masked =
      s.predicate != nullptr && ir::AsUniformInt(s.predicate) != 1;
  if (!masked) Hoist(s.value);
  if (lanes == 1) {
    return StoreLane(s, Index(s.indices[0]), Text(s.value));
  }
  if (!masked && StoreVector(s)) return;
  // All loads come before the first store.
  std::vector<std::string> values;
  for (int lane = 0; lane < lanes; ++lane) {
    const ir::Expr value = Lane(s.value, lane);
    if (!masked) {
      const std::string text = Text(value);
      values.push_back(HasLoad(value) ? Keep(value->dtype, text) : text);
      continue;
    }
    values.push_back(Lazily([&] {
      const std::string condition = Text(Lane(s.predicate, lane));
      return Keep(value->dtype,
                  absl::StrCat(condition, " ? ", Text(value), " : 0"));
    }));
  }
  for (int lane = 0; lane < lanes; ++lane) {
    const std::string index = Index(Lane(s.indices[0], lane));
    const std::string& value = values[static_cast<size_t>(lane)];
    if (!masked) {
      StoreLane(s, index, value);
      continue;
    }
    Line(absl::StrCat("if (", Text(Lane(s.predicate, lane)), ") {"));
    ++depth_;
    StoreLane(s, index, value);
    --depth_;
    Line("}");
  }
}

void OpenClEmitter::StoreLane(const ir::StoreNode& s, const std::string& index,
                              const std::string& value) {
  const Memory& memory = memory_.at(s.buffer.get());
  const ir::DataType dtype = s.buffer->dtype;
  if (dtype == ir::DataType::Float(16)) {
    return Line(absl::StrCat("vstore_half", kRounding, "(", value, ", ", index,
                             ", (", memory.space, " half*)", memory.name,
                             ");"));
  }
  const std::string stored = dtype == ir::DataType::BFloat16()
                                 ? Call("to_bfloat", dtype, value)
                                 : value;
  Line(absl::StrCat(memory.name, "[", index, "] = ", stored, ";"));
}

bool OpenClEmitter::StoreVector(const ir::StoreNode& s) {
  const auto ramp = AsRamp(s.indices[0]);
  if (!ramp || !ir::IsConstInt(ramp->stride, 1)) return false;
  const int lanes = s.indices[0]->dtype.lanes;
  const ir::DataType dtype = s.buffer->dtype;
  bool dereferenced = false;
  const std::string pointer = VectorPointer(s.buffer, ramp->base, lanes,
                                            /*is_const=*/false, &dereferenced);
  if (pointer.empty()) return false;
  std::vector<std::string> values;
  for (int lane = 0; lane < lanes; ++lane) {
    std::string value = Text(Lane(s.value, lane));
    if (dtype == ir::DataType::BFloat16()) {
      value = Call("to_bfloat", dtype, value);
    }
    values.push_back(std::move(value));
  }
  const bool half = dtype == ir::DataType::Float(16);
  const std::string vector =
      absl::StrCat("(", half ? "float" : OpenClMemoryType(dtype), lanes, ")(",
                   absl::StrJoin(values, ", "), ")");
  if (half) {
    Line(absl::StrCat("vstore_half", lanes, kRounding, "(", vector, ", 0, ",
                      pointer, ");"));
  } else if (dereferenced) {
    Line(absl::StrCat("*", pointer, " = ", vector, ";"));
  } else {
    Line(absl::StrCat("vstore", lanes, "(", vector, ", 0, ", pointer, ");"));
  }
  return true;
}

absl::StatusOr<std::string> EmitOpenClSource(
    std::span<const NamedKernel> kernels) {
  OpenClEmitter emitter;
  std::string text;
  for (const NamedKernel& kernel : kernels) {
    TF_ASSIGN_OR_RETURN(const std::string code, emitter.EmitKernel(kernel));
    absl::StrAppend(&text, "\n", code);
  }
  return emitter.Prelude() + text;
}

}  // namespace tilefarm::codegen

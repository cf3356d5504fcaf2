#include "compiler/codegen/signature.h"

#include <set>

#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::codegen {
namespace {

// The buffers that the function may write.
std::set<const ir::BufferNode*> WrittenBy(const ir::PrimFunc& function) {
  std::set<const ir::BufferNode*> written;
  ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
    if (const auto* store = ir::As<ir::StoreNode>(stmt)) {
      written.insert(store->buffer.get());
    }
    // Of what an instruction of the device computes there may be no store.
    if (const auto* block = ir::As<ir::BlockNode>(stmt)) {
      for (const ir::BufferRegion& write : block->writes) {
        written.insert(write.buffer.get());
      }
    }
    return true;
  });
  return written;
}

// Whether its code may use several threads: the pool's, or a library's.
bool UsesThreads(const ir::PrimFunc& lowered) {
  bool uses = false;
  ir::PreOrder(lowered.body, [&](const ir::Stmt& stmt) {
    const auto* loop = ir::As<ir::ForNode>(stmt);
    uses |= loop != nullptr && loop->for_kind == ir::ForKind::kParallel;
    return !uses;
  });
  ir::PostOrderExprs(lowered.body, [&](const ir::Expr& expr) {
    const auto* op = ir::As<ir::MachineOpNode>(expr);
    uses |= op != nullptr && op->op == ir::MachineOp::kLibraryGemm;
  });
  return uses;
}

ParameterSignature Describe(const ir::Buffer& buffer, bool is_written) {
  ParameterSignature parameter;
  parameter.name = buffer->name;
  parameter.dtype = buffer->dtype;
  parameter.shape = buffer->shape;
  parameter.offset = buffer->elem_offset;
  parameter.is_written = is_written;
  std::vector<int64_t> dense(buffer->shape.size(), 1);
  for (size_t i = dense.size(); i-- > 1;) {
    dense[i - 1] = dense[i] * buffer->shape[i];
  }
  parameter.strides = buffer->strides.empty() ? dense : buffer->strides;
  parameter.is_dense = parameter.strides == dense && parameter.offset == 0;
  int64_t last = parameter.offset;
  for (size_t i = 0; i < dense.size(); ++i) {
    last += (buffer->shape[i] - 1) * parameter.strides[i];
  }
  parameter.bytes = (last + 1) * buffer->dtype.bytes();
  return parameter;
}

}  // namespace

Signature SignatureOf(const LoweredFunction& function,
                      const LoweredFunction& lowered,
                      const target::Target& target) {
  Signature signature;
  signature.symbol = function.symbol;
  const auto written = WrittenBy(*function.function);
  for (const ir::Buffer& buffer : function.function->params) {
    signature.parameters.push_back(
        Describe(buffer, written.contains(buffer.get())));
  }
  bool threads = UsesThreads(*lowered.function);
  for (const PackedParameter& packed : lowered.packed) {
    ParameterSignature& parameter =
        signature.parameters[static_cast<size_t>(packed.parameter)];
    parameter.packed_bytes = packed.bytes;
    parameter.packs_by_copy = packed.pack == nullptr;
    threads |= packed.pack != nullptr && UsesThreads(*packed.pack);
  }
  signature.threads = threads && !target.is_gpu() ? target.cores : 1;
  // As kernels load and copy them (runtime/gpu.h).
  signature.alignment = target.is_gpu() ? 16 : 0;
  return signature;
}

int32_t OnnxNumber(ir::DataType dtype) {
  if (dtype.is_bool()) return 9;
  switch (dtype.code) {
    case ir::TypeCode::kBFloat:
      return 16;
    case ir::TypeCode::kFloat:
      return dtype.bits == 16 ? 10 : dtype.bits == 32 ? 1 : 11;
    case ir::TypeCode::kInt:
      return dtype.bits == 8    ? 3
             : dtype.bits == 16 ? 5
             : dtype.bits == 32 ? 6
                                : 7;
    case ir::TypeCode::kUInt:
      return dtype.bits == 8    ? 2
             : dtype.bits == 16 ? 4
             : dtype.bits == 32 ? 12
                                : 13;
  }
  return 0;
}

}  // namespace tilefarm::codegen

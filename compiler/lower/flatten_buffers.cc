#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compiler/ir/dim_align.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

// Parsing or scheduling has checked these strides already.
std::vector<int64_t> Strides(const ir::BufferNode& buffer) {
  ir::Limits any_size;
  any_size.max_buffer_bytes = std::numeric_limits<int64_t>::max();
  auto strides = ir::PaddedStrides(buffer, any_size);
  TF_CHECK(strides.has_value());
  return *std::move(strides);
}

class Flattener : public ir::Mutator {
 public:
  using Mutator::Mutate;

  Buffer MutateBuffer(const Buffer& buffer) override {
    Buffer& flat = flat_[buffer.get()];
    if (flat == nullptr) {
      const int64_t size = buffer->shape.empty() || !buffer->is_dense()
                               ? buffer->memory_elements()
                               : buffer->shape[0] * Strides(*buffer)[0];
      flat = ir::MakeBuffer(buffer->name, buffer->dtype, {size}, buffer->scope);
      // Keeps the buffer alive, so that no other one gets its address as a key.
      keep_.push_back(buffer);
    }
    return flat;
  }

 protected:
  Expr MutateLoad(const ir::LoadNode& e, const Expr&) override {
    return std::make_shared<const ir::LoadNode>(
        MutateBuffer(e.buffer), Flat(*e.buffer, e.indices), e.dtype,
        e.predicate == nullptr ? nullptr : Mutate(e.predicate));
  }
  Stmt MutateStore(const ir::StoreNode& s, const Stmt&) override {
    return ir::MakeStore(
        MutateBuffer(s.buffer), Flat(*s.buffer, s.indices), Mutate(s.value),
        s.predicate == nullptr ? nullptr : Mutate(s.predicate));
  }

 private:
  std::vector<Expr> Flat(const ir::BufferNode& buffer,
                         const std::vector<Expr>& indices) {
    const std::vector<int64_t> strides = Strides(buffer);
    Expr offset = ir::IntConst(buffer.elem_offset);
    for (size_t i = 0; i < indices.size(); ++i) {
      offset = std::move(offset) + Mutate(indices[i]) * strides[i];
    }
    return {std::move(offset)};
  }

  ir::BufferMap flat_;
  std::vector<Buffer> keep_;
};

}  // namespace

ir::PrimFunc FlattenBuffers(const ir::PrimFunc& function) {
  Flattener flattener;
  ir::PrimFunc out = function;
  for (Buffer& param : out.params) param = flattener.MutateBuffer(param);
  out.body = flattener.Mutate(function.body);
  return out;
}

}  // namespace tilefarm::lower

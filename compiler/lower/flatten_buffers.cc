#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

// Elements from one index of a dimension to the next.
std::vector<int64_t> Strides(const ir::BufferNode& buffer) {
  std::vector<int64_t> strides(buffer.shape.size(), 1);
  for (size_t i = strides.size(); i-- > 0;) {
    if (i + 1 < strides.size())
      strides[i] = strides[i + 1] * buffer.shape[i + 1];
    for (const auto& align : buffer.dim_align) {
      if (align.size() != 3 || align[0] != static_cast<int64_t>(i)) continue;
      const int64_t factor = align[1], offset = align[2];
      if (factor <= 0) continue;
      strides[i] += ((offset - strides[i]) % factor + factor) % factor;
    }
  }
  return strides;
}

class Flattener : public ir::Mutator {
 public:
  using Mutator::Mutate;

  Buffer MutateBuffer(const Buffer& buffer) override {
    Buffer& flat = flat_[buffer.get()];
    if (flat == nullptr) {
      const int64_t size =
          buffer->shape.empty() ? 1 : buffer->shape[0] * Strides(*buffer)[0];
      flat = ir::MakeBuffer(buffer->name, buffer->dtype, {size}, buffer->scope);
      // Keeps the key from being freed and reused.
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
    Expr offset = ir::IntConst(0);
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

#include "worker/builder/analysis.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/function_attrs.h"
#include "compiler/ir/layout_free.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::worker {
namespace {

// Ranges of integer inputs that no index depends on. Sums of products stay far
// from overflow, and both signs occur.
constexpr int64_t kIntLow = -8, kIntHigh = 7, kUIntHigh = 15;

class ProgramReader : public ir::Visitor {
 public:
  using Visitor::Visit;

  std::set<const ir::BufferNode*> read, written;
  std::map<const ir::BufferNode*, int64_t> index_bound;

 protected:
  void VisitStore(const ir::StoreNode& store) override {
    Visitor::VisitStore(store);  // its loads come first
    NoteIndices(*store.buffer, store.indices);
    written.insert(store.buffer.get());
  }

  void VisitLoad(const ir::LoadNode& load) override {
    Visitor::VisitLoad(load);
    NoteIndices(*load.buffer, load.indices);
    if (!written.contains(load.buffer.get())) read.insert(load.buffer.get());
  }

  void VisitBlock(const ir::BlockNode& block) override {
    for (const ir::IterVar& iter : block.iters) Visit(iter.binding);
    Visit(block.predicate);
    if (block.init != nullptr) Visit(block.init);
    Visit(block.body);
  }

 private:
  void NoteIndices(const ir::BufferNode& buffer,
                   const std::vector<ir::Expr>& indices) {
    for (size_t i = 0; i < indices.size() && i < buffer.shape.size(); ++i) {
      const int64_t bound = buffer.shape[i] - 1;
      ir::PostOrderExprs(indices[i], [&](const ir::Expr& expr) {
        const auto* load = ir::As<ir::LoadNode>(expr);
        if (load == nullptr) return;
        const auto [it, added] = index_bound.emplace(load->buffer.get(), bound);
        if (!added) it->second = std::min(it->second, bound);
      });
    }
  }
};

}  // namespace

absl::StatusOr<ProgramSpec> AnalyzeProgram(const ir::PrimFunc& function) {
  if (function.params.size() > kMaxBuffers) {
    return absl::InvalidArgumentError(
        absl::StrCat("the function has ", function.params.size(),
                     " parameters, more than ", kMaxBuffers));
  }
  TF_ASSIGN_OR_RETURN(const std::vector<int> layout_free,
                      ir::LayoutFreeParams(function));
  ProgramReader reader;
  reader.Visit(function.body);
  ProgramSpec spec;
  for (const ir::Buffer& param : function.params) {
    const std::optional<ElementType> type =
        ParseElementType(param->dtype.ToString());
    if (!type.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", param->name, " has type ",
                       param->dtype.ToString(), ", which cannot be measured"));
    }
    BufferSpec buffer;
    buffer.type = *type;
    buffer.written = reader.written.contains(param.get());
    // A parameter that is never accessed gets inputs as well.
    buffer.read = reader.read.contains(param.get()) || !buffer.written;
    buffer.elements = static_cast<uint64_t>(param->memory_elements());
    if (!IsFloat(*type)) {
      const auto bound = reader.index_bound.find(param.get());
      if (bound != reader.index_bound.end()) {
        buffer.low = 0;
        buffer.high = bound->second;
        if (param->dtype.bits < 64) {  // the range of the type
          const int value_bits = param->dtype.bits - param->dtype.is_int();
          buffer.high = std::min(buffer.high, (int64_t{1} << value_bits) - 1);
        }
      } else {
        buffer.low = param->dtype.is_int() ? kIntLow : 0;
        buffer.high = param->dtype.is_int() ? kIntHigh : kUIntHigh;
      }
    }
    spec.buffers.push_back(buffer);
  }
  for (const int param : layout_free) {
    spec.buffers[static_cast<size_t>(param)].layout_free = true;
  }
  spec.cold_constants = function.attrs.contains(ir::kColdConstants);
  return spec;
}

}  // namespace tilefarm::worker

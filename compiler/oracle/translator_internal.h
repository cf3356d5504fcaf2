// Translates a program. Private: has LLVM types.
#ifndef TILEFARM_COMPILER_ORACLE_TRANSLATOR_INTERNAL_H_
#define TILEFARM_COMPILER_ORACLE_TRANSLATOR_INTERNAL_H_

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"
#include "compiler/oracle/arithmetic_internal.h"
#include "compiler/oracle/interchange.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tilefarm::oracle {

using Buffers = std::unordered_set<const ir::BufferNode*>;

// The number of elements of memory that the buffer spans. Only this and
// Translator::Offset interpret strides and offsets.
int64_t Span(const ir::BufferNode& buffer);
// Whether the load reads the element that the store writes.
bool ReadsElementOf(const ir::LoadNode& load, const ir::StoreNode& store);
// Whether the value is the element that the store writes, combined once with
// others by operators, as in a reduction. In a recurrence such as
// x = max(x, f(x)), the order is the program's, and x is rounded each time.
bool Updates(const ir::StoreNode& store);
bool Reduces(const ir::BlockNode& block);

// Finds buffers that are written, that reductions accumulate floats into, and
// that are allocated, in program order.
class FindBuffers : public ir::Visitor {
 public:
  Buffers written, accumulators;
  std::vector<ir::Buffer> allocated;

 protected:
  void VisitBlock(const ir::BlockNode& block) override {
    allocated.insert(allocated.end(), block.allocs.begin(), block.allocs.end());
    const bool outer =
        std::exchange(in_reduction_, in_reduction_ || Reduces(block));
    Visitor::VisitBlock(block);
    in_reduction_ = outer;
  }
  void VisitStore(const ir::StoreNode& store) override {
    written.insert(store.buffer.get());
    if (in_reduction_ && store.buffer->dtype.is_float() && Updates(store)) {
      accumulators.insert(store.buffer.get());
    }
  }

 private:
  bool in_reduction_ = false;
};

// Emits one function into a module.
class Translator {
 public:
  Translator(const ir::PrimFunc& function, const FindBuffers& found,
             Buffers& inexact, llvm::Module& module)
      : function_(function),
        found_(found),
        inexact_(inexact),
        module_(module),
        b_(module.getContext()),
        math_(module, b_) {}

  // True: another buffer turned out to be inexact, so the module must not be
  // used.
  absl::StatusOr<bool> Run();
  // Whether the module has a bound for the parameter.
  bool Bounded(const ir::BufferNode* param) const {
    return found_.written.contains(param) && inexact_.contains(param);
  }
  int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  // The memory of a buffer. Accumulated floats are float64, so that their order
  // has little effect; 16-bit ones are float32, rounded.
  struct Place {
    llvm::Value* values = nullptr;
    llvm::Type* type = nullptr;
    bool own_format = true;         // in the format of the program's buffer
    llvm::Value* errors = nullptr;  // float64; null: exact
  };
  using Body = std::function<void()>;

  template <typename T>
  T Fail(const std::string& message, T result) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(message);
    return result;
  }
  bool IsParameter(const ir::BufferNode* buffer) const {
    return std::any_of(
        function_.params.begin(), function_.params.end(),
        [&](const ir::Buffer& param) { return param.get() == buffer; });
  }
  bool IsAccumulator(const ir::BufferNode* buffer) const {
    return found_.accumulators.contains(buffer);
  }

  void MakeEntry(llvm::Function* body);
  void PlaceBuffers(llvm::Function* body);
  llvm::Value* Allocate(int64_t bytes);
  void CopyIn(const ir::BufferNode& param, const Place& place,
              llvm::Value* from);
  void CopyOut(const ir::BufferNode& param, const Place& place, llvm::Value* to,
               llvm::Value* bounds);

  llvm::Value* Number(int64_t n) {
    return b_.getInt64(static_cast<uint64_t>(n));
  }
  llvm::BasicBlock* NewBlock() {
    return llvm::BasicBlock::Create(module_.getContext(), "",
                                    b_.GetInsertBlock()->getParent());
  }
  void Loop(llvm::Value* min, llvm::Value* extent,
            const std::function<void(llvm::Value*)>& body);
  void Guard(llvm::Value* condition, const Body& body);
  Value Guarded(llvm::Value* condition, ir::DataType dtype,
                const std::function<Value()>& body);
  llvm::Value* At(llvm::Type* type, llvm::Value* base, llvm::Value* offset) {
    return b_.CreateInBoundsGEP(type, base, offset);
  }

  // The element's offset in memory; `doubt` gets whether it depends on
  // rounding, null: it does not.
  llvm::Value* Offset(const ir::BufferNode& buffer,
                      const std::vector<ir::Expr>& indices,
                      llvm::Value** doubt);
  Value ReadPlace(const ir::BufferNode& buffer, llvm::Value* offset, bool raw);
  Value Emit(const ir::Expr& expr);
  Value EmitLoad(const ir::LoadNode& load);
  Value EmitLogical(const ir::BinaryNode& e);
  Value EmitIfThenElse(const ir::CallNode& e);

  void Emit(const ir::Stmt& stmt);
  void EmitStore(const ir::StoreNode& store);
  void EmitFor(const ir::ForNode& loop);
  void EmitNest(const ReductionNest& nest);
  // How often the loops around a reduction run each of its instances; loops of
  // other elements do not count.
  double RepeatsOf(const ir::BlockNode& block) const;
  void EmitBlock(const ir::BlockNode& block);
  void EmitConditional(const Value& condition, const Body& then_case,
                       const Body& else_case);

  const ir::PrimFunc& function_;
  const FindBuffers& found_;
  Buffers& inexact_;
  bool grown_ = false;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  Arithmetic math_;
  absl::Status status_;
  std::unordered_map<const ir::VarNode*, Value> vars_;
  std::unordered_map<const ir::BufferNode*, Place> places_;
  std::vector<llvm::Value*> allocations_;
  int64_t workspace_bytes_ = 0;
  // The update of an accumulator that is being translated. Its own element is
  // read without rounding, others are rounded to the buffer's dtype.
  const ir::StoreNode* accumulating_ = nullptr;
  bool in_reduction_ = false;
  // Summed by the surrounding blocks; n that are the same count as n^2, since
  // their rounding adds up instead of cancelling.
  double terms_ = 1;
  // Loops inside the block around the statement.
  std::vector<std::pair<const ir::VarNode*, double>> inner_loops_;
  // Stores only mark that their element cannot be judged.
  bool marking_ = false;
};

}  // namespace tilefarm::oracle

#endif  // TILEFARM_COMPILER_ORACLE_TRANSLATOR_INTERNAL_H_

// Expressions compiled for the interpreter: trees of nodes with resolved
// variable slots and buffers. Private to the interpreter.
//
// Vectors of lowered code are evaluated lane by lane: a Ramp reads the frame's
// current lane, a Broadcast ignores it.
#ifndef TILEFARM_COMPILER_IR_EVAL_H_
#define TILEFARM_COMPILER_IR_EVAL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

// The state of a running program. The first error is kept; evaluation continues
// with zeros until the next statement checks `failed`.
struct Frame {
  std::vector<int64_t> ints;     // by variable slot
  std::vector<double> floats;    // by variable slot
  std::vector<std::byte*> data;  // by buffer slot
  // Which elements were written, by buffer slot; null: all have values.
  std::vector<uint8_t*> written;
  int lane = 0;
  int64_t steps_left = 0;
  const BlockNode* block = nullptr;
  bool failed = false;
  absl::Status status;

  void Fail(absl::StatusCode code, const std::string& message);
  // Whether the element has a value; fails if not.
  bool CheckWritten(size_t slot, int64_t at, const BufferNode& buffer);
};

struct IntEval {
  virtual ~IntEval() = default;
  virtual int64_t Eval(Frame& frame) const = 0;
};
struct FloatEval {
  virtual ~FloatEval() = default;
  virtual double Eval(Frame& frame) const = 0;
};
using IntEvalPtr = std::unique_ptr<IntEval>;
using FloatEvalPtr = std::unique_ptr<FloatEval>;

// An expression of either kind; bools and integers are int64, unsigned 64-bit
// integers as their bits.
struct AnyEval {
  IntEvalPtr integer;
  FloatEvalPtr real;
  DataType dtype;
};

// The address of an element. `Eval` gives its offset in memory in elements, or
// -1 after an access out of bounds, which it reports.
class OffsetEval {
 public:
  int64_t Eval(Frame& frame) const;
  // The same for an element that is read, which must have a value: -1 if not.
  int64_t EvalForRead(Frame& frame, size_t slot) const;

 private:
  friend class EvalCompiler;
  Buffer buffer_;
  std::vector<IntEvalPtr> indices_;
  std::vector<int64_t> extents_;
  std::vector<int64_t> strides_;
  int64_t start_ = 0;
};

// Compiles expressions and numbers variable and buffer slots.
class EvalCompiler {
 public:
  int Slot(const VarNode* var);
  int Slot(const BufferNode* buffer);
  int num_vars() const { return static_cast<int>(vars_.size()); }
  int num_buffers() const { return static_cast<int>(buffers_.size()); }

  IntEvalPtr Int(const Expr& expr);
  FloatEvalPtr Float(const Expr& expr);
  AnyEval Any(const Expr& expr);
  OffsetEval Offset(const Buffer& buffer, const std::vector<Expr>& indices);

 private:
  IntEvalPtr Linear(const Expr& expr);
  IntEvalPtr IntBinary(const BinaryNode& node);
  IntEvalPtr IntCall(const CallNode& node);
  FloatEvalPtr FloatBinary(const BinaryNode& node);
  FloatEvalPtr FloatCall(const CallNode& node);
  IntEvalPtr Compare(const BinaryNode& node);

  std::unordered_map<const VarNode*, int> vars_;
  std::unordered_map<const BufferNode*, int> buffers_;
};

// Elements in memory, of any alignment. Those with double are for floats only.
int64_t ReadInt(const std::byte* data, int64_t index, DataType dtype);
double ReadFloat(const std::byte* data, int64_t index, DataType dtype);
void WriteInt(std::byte* data, int64_t index, DataType dtype, int64_t value);
void WriteFloat(std::byte* data, int64_t index, DataType dtype, double value);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_EVAL_H_

// Private: translates the code of one work item to OpenCL C.
#ifndef TILEFARM_COMPILER_CODEGEN_OPENCL_EMITTER_H_
#define TILEFARM_COMPILER_CODEGEN_OPENCL_EMITTER_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/arith/index_math.h"
#include "compiler/codegen/opencl_source.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::codegen {

// In registers: bool, int8 as char, 16-bit floats as float.
std::string OpenClType(ir::DataType dtype);
// In memory: bool as uchar, 16-bit floats as ushort.
std::string OpenClMemoryType(ir::DataType dtype);

class OpenClEmitter {
 public:
  // The text of a kernel; an error ends it.
  absl::StatusOr<std::string> EmitKernel(const NamedKernel& kernel);
  // What comes before the kernels that were emitted so far: helper functions
  // and extensions.
  std::string Prelude() const;

 private:
  // A scalar. Indices are int where their bounds allow it, else long.
  struct Value {
    std::string text;
    bool narrow = false;  // of int64 alone: the text has type int
  };
  struct Memory {
    std::string name;
    std::string space;     // "__global"
    bool aligned = false;  // to kDeviceAlignment
  };

  // opencl_source.cc
  void Line(std::string_view text);
  std::string NewName(std::string_view name);
  void EmitAllocations(const lower::Kernel& kernel);
  void EmitStmt(const ir::Stmt& stmt);
  void EmitFor(const ir::ForNode& loop);
  void EmitIf(const ir::IfNode& branch);
  void EmitStore(const ir::StoreNode& store);
  void StoreLane(const ir::StoreNode& store, const std::string& index,
                 const std::string& value);
  bool StoreVector(const ir::StoreNode& store);
  // Defines the variable from here on.
  void Define(const ir::Var& var, const ir::Expr& value);
  // A variable of the function with this value.
  std::string Keep(ir::DataType dtype, const std::string& text);

  // opencl_memory.cc: loads of vectors, and the lanes of expressions.
  void Hoist(const ir::Expr& expr);
  // A load of adjacent elements; empty: it is none.
  std::string VectorLoad(const ir::LoadNode& load);
  std::string GuardedLoad(const ir::CallNode& choice);
  // `*dereferenced`: it points to a vector, else to the first element. Empty:
  // the elements are accessed one by one.
  std::string VectorPointer(const ir::Buffer& buffer, const ir::Expr& first,
                            int lanes, bool is_const, bool* dereferenced);
  std::string LoadText(const ir::Buffer& buffer, const std::string& index);
  // The lane as a scalar expression. Lanes of what was hoisted are variables.
  ir::Expr Lane(const ir::Expr& expr, int lane);
  ir::Expr HoistedLane(const ir::Expr& vector, int lane);
  ir::Expr MachineOpLane(const ir::MachineOpNode& e, int lane);
  // The scalars that a variable with a vector's value stands for.
  const std::vector<ir::Var>& LanesOf(const ir::VarNode& var);

  // opencl_expr.cc
  Value Emit(const ir::Expr& expr);
  std::string Text(const ir::Expr& expr) { return Emit(expr).text; }
  // Of int64, as a subscript: without the parentheses around it.
  std::string Index(const ir::Expr& expr);
  Value Choice(const ir::Expr& condition, const ir::Expr& a, const ir::Expr& b);
  Value EmitBinary(const ir::BinaryNode& e);
  std::string EmitFloatBinary(ir::BinaryOp op, const std::string& a,
                              const std::string& b, ir::DataType dtype);
  std::string EmitIntBinary(ir::BinaryOp op, const std::string& a,
                            const std::string& b, ir::DataType dtype,
                            bool wraps);
  Value EmitCast(const ir::CastNode& e);
  Value EmitCall(const ir::CallNode& e);
  std::string EmitFloatCall(const ir::CallNode& e,
                            const std::vector<std::string>& args);
  Value EmitLoad(const ir::LoadNode& e);
  Value EmitMachineOp(const ir::MachineOpNode& e);
  std::string Constant(const ir::FloatConstNode& e);
  // For what is evaluated only where a condition holds.
  template <typename Make>
  auto Lazily(Make make) {
    ++lazy_;
    auto result = make();
    --lazy_;
    return result;
  }
  std::string Call(std::string_view helper, ir::DataType dtype,
                   const std::string& arguments);
  bool Fits(const ir::Expr& expr);
  std::string Fail(absl::Status status);

  absl::Status status_;
  std::string text_;
  int depth_ = 0;
  int lazy_ = 0;  // temporaries would be evaluated in vain, or wrongly
  std::set<std::string> names_;
  std::set<std::string> helpers_;  // definitions, for all kernels
  bool has_double_ = false;
  std::map<const ir::BufferNode*, Memory> memory_;
  std::map<const ir::VarNode*, Value> vars_;
  std::map<const ir::VarNode*, std::vector<ir::Var>> lanes_;
  // Of the present statement: vectors that are variables of the function, and
  // lets that are defined.
  std::map<const ir::ExprNode*, std::string> hoisted_;
  std::vector<ir::Expr> kept_;  // keys of vars_
  std::unique_ptr<arith::IndexMath> math_;
};

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_OPENCL_EMITTER_H_

#include "compiler/ir/verifier.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/layout_free.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

// Whether two elements may share memory, for example with a stride of 0.
bool ElementsMayOverlap(const BufferNode& buffer) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, extent
  for (size_t i = 0; i < buffer.strides.size(); ++i) {
    if (buffer.shape[i] > 1) {
      steps.emplace_back(buffer.strides[i], buffer.shape[i]);
    }
  }
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [stride, extent] : steps) {
    if (stride <= reach) return true;
    reach += stride * (extent - 1);
  }
  return false;
}

// Walks a function and keeps the first violation.
class FunctionVerifier : public Visitor {
 public:
  // `in_lowering`: blocks may use the loops around them, and their regions may
  // name buffers that have moved.
  explicit FunctionVerifier(const Limits& limits, bool in_lowering = false)
      : limits_(limits), in_lowering_(in_lowering) {}

  absl::Status Run(const PrimFunc& function) {
    for (const Buffer& param : function.params) {
      if (param == nullptr) return Fail("a parameter without a buffer");
      if (!declared_.insert(param.get()).second) {
        Report(absl::StrCat("the buffer '", param->name,
                            "' is a parameter twice"));
      }
      CheckBuffer(*param, /*parameter=*/true);
    }
    const BlockNode* root = function.root();
    if (root != nullptr && !root->iters.empty()) {
      Report("the root block has iteration variables");
    }
    Visit(function.body);
    if (total_bytes_ > limits_.max_total_bytes) {
      Report(absl::StrCat("the buffers need ", total_bytes_,
                          " bytes; the limit is ", limits_.max_total_bytes));
    }
    return status_;
  }

 protected:
  void Visit(const Expr& expr) override {
    if (!Enter()) return;
    Visitor::Visit(expr);
    --depth_;
  }
  void Visit(const Stmt& stmt) override {
    if (!Enter()) return;
    Visitor::Visit(stmt);
    --depth_;
  }

  void VisitVar(const VarNode& var) override {
    if (!vars_.contains(&var)) {
      Report(
          absl::StrCat("variable '", var.name, "' is used out of its scope"));
      return;
    }
    if (in_lowering_ || in_binding_ || block_stack_.empty()) return;
    // Only an opaque block, which has no variables, may use outer loops.
    const OpenBlock& block = block_stack_.back();
    if (!block.node->iters.empty() && block.hidden.contains(&var)) {
      Report(absl::StrCat("loop variable '", var.name,
                          "' is used inside of the block; bind it with "
                          "T.axis.spatial or T.axis.reduce"));
    }
  }

  void VisitBinary(const BinaryNode& e) override {
    if (e.a->dtype != e.b->dtype) {
      Report(absl::StrCat("operands of '", std::string(BinaryOpName(e.op)),
                          "' have dtypes ", e.a->dtype.ToString(), " and ",
                          e.b->dtype.ToString()));
    }
    Visitor::VisitBinary(e);
  }

  void VisitSelect(const SelectNode& e) override {
    if (!e.condition->dtype.element().is_bool()) {
      Report("the condition of a T.Select is not bool");
    }
    Visitor::VisitSelect(e);
  }

  void VisitCall(const CallNode& e) override {
    if (static_cast<int>(e.args.size()) != IntrinsicArity(e.op)) {
      Report(absl::StrCat("T.", std::string(IntrinsicName(e.op)), " has ",
                          e.args.size(), " arguments"));
    } else if (e.op == Intrinsic::kIfThenElse &&
               !e.args[0]->dtype.element().is_bool()) {
      Report("the condition of a T.if_then_else is not bool");
    } else if (e.op == Intrinsic::kReinterpret &&
               (!CanReinterpret(e.dtype.element(),
                                e.args[0]->dtype.element()) ||
                e.dtype.lanes != e.args[0]->dtype.lanes)) {
      Report(absl::StrCat("T.reinterpret of ", e.args[0]->dtype.ToString(),
                          " as ", e.dtype.ToString()));
    }
    Visitor::VisitCall(e);
  }

  void VisitMachineOp(const MachineOpNode& e) override {
    const std::string name =
        absl::StrCat("T.", std::string(MachineOpName(e.op)));
    if (!in_lowering_) {
      Report(absl::StrCat(name,
                          " is not part of the language: only lowering "
                          "makes it"));
    } else if (static_cast<int>(e.args.size()) != MachineOpArity(e.op)) {
      Report(absl::StrCat(name, " has ", e.args.size(), " arguments"));
    }
    Visitor::VisitMachineOp(e);
  }

  void VisitLoad(const LoadNode& e) override {
    CheckAccess(*e.buffer, e.indices);
    if (e.dtype.element() != e.buffer->dtype) {
      Report(absl::StrCat("a load of '", e.buffer->name, "' has dtype ",
                          e.dtype.ToString()));
    }
    Visitor::VisitLoad(e);
  }

  void VisitLet(const LetNode& e) override {
    Visit(e.value);
    CheckOfLet(*e.var);
    Scoped(e.var, e.value->dtype, [&] { Visit(e.body); });
  }

  void VisitStore(const StoreNode& s) override {
    CheckAccess(*s.buffer, s.indices);
    if (ElementsMayOverlap(*s.buffer)) {
      Report(absl::StrCat("'", s.buffer->name, "' is written, but its strides ",
                          "let elements share memory"));
    }
    if (s.value->dtype.element() != s.buffer->dtype) {
      Report(absl::StrCat("a store to '", s.buffer->name, "' of ",
                          s.buffer->dtype.ToString(), " has dtype ",
                          s.value->dtype.ToString()));
    }
    Visitor::VisitStore(s);
  }

  void VisitFor(const ForNode& s) override {
    if (++loops_ > limits_.max_loops) {
      Report(absl::StrCat("more than ", limits_.max_loops, " loops"));
      return;
    }
    Visit(s.min);
    Visit(s.extent);
    const auto extent = AsInt(s.extent);
    if (extent && (*extent < 0 || *extent > limits_.max_extent)) {
      Report(absl::StrCat("loop '", s.var->name, "' has extent ", *extent));
    }
    if (!block_stack_.empty()) block_stack_.back().inner.insert(s.var.get());
    Scoped(s.var, s.extent->dtype, [&] { Visit(s.body); });
  }

  void VisitBlock(const BlockNode& b) override {
    const bool root = block_stack_.empty();
    const auto in_binding = in_binding_;
    // Bindings and predicate are in the scope of the outer loops.
    in_binding_ = true;
    for (const IterVar& iter : b.iters) {
      Visit(iter.dom.min);
      Visit(iter.dom.extent);
      Visit(iter.binding);
      const auto extent = AsInt(iter.dom.extent);
      if (extent && (*extent < 1 || *extent > limits_.max_extent)) {
        Report(absl::StrCat("block \"", b.name, "\": axis '", iter.var->name,
                            "' has extent ", *extent));
      }
    }
    Visit(b.predicate);
    in_binding_ = in_binding;
    if (!b.predicate->dtype.is_bool()) {
      Report(absl::StrCat("block \"", b.name, "\": predicate is not bool"));
    }
    const bool reduces = std::any_of(
        b.iters.begin(), b.iters.end(),
        [](const IterVar& iter) { return iter.type == IterType::kReduce; });
    if (b.init != nullptr && !reduces) {
      Report(absl::StrCat("block \"", b.name,
                          "\" has T.init but no T.axis.reduce"));
    }
    OpenBlock open{&b, {}, {}};
    if (!root) {
      const OpenBlock& outer = block_stack_.back();
      open.hidden = outer.hidden;
      open.hidden.insert(outer.inner.begin(), outer.inner.end());
    }
    block_stack_.push_back(std::move(open));
    std::vector<const BufferNode*> allocated;
    for (const Buffer& buffer : b.allocs) {
      if (!declared_.insert(buffer.get()).second) {
        Report(
            absl::StrCat("the buffer '", buffer->name, "' is allocated twice"));
      }
      CheckBuffer(*buffer);
      allocated.push_back(buffer.get());
    }
    std::vector<const VarNode*> bound;
    for (const IterVar& iter : b.iters) {
      if (!vars_.insert(iter.var.get()).second) {
        Report(absl::StrCat("block \"", b.name, "\": axis '", iter.var->name,
                            "' is bound twice"));
      }
      bound.push_back(iter.var.get());
    }
    for (const auto* regions : {&b.reads, &b.writes}) {
      for (const BufferRegion& region : *regions) CheckRegion(region);
    }
    if (b.init != nullptr) Visit(b.init);
    Visit(b.body);
    block_stack_.pop_back();
    for (const VarNode* var : bound) vars_.erase(var);
    for (const BufferNode* buffer : allocated) declared_.erase(buffer);
  }

  void VisitIf(const IfNode& s) override {
    if (!s.condition->dtype.is_bool()) Report("a condition is not bool");
    Visitor::VisitIf(s);
  }

  void VisitLetStmt(const LetStmtNode& s) override {
    Visit(s.value);
    CheckOfLet(*s.var);
    Scoped(s.var, s.value->dtype, [&] { Visit(s.body); });
  }

  void VisitAlloc(const AllocNode& s) override {
    if (!declared_.insert(s.buffer.get()).second) {
      Report(
          absl::StrCat("the buffer '", s.buffer->name, "' is allocated twice"));
    }
    CheckBuffer(*s.buffer);
    Visit(s.body);
    declared_.erase(s.buffer.get());
  }

 private:
  struct OpenBlock {
    const BlockNode* node;
    std::unordered_set<const VarNode*> hidden;  // loops around the block
    std::unordered_set<const VarNode*> inner;   // loops opened inside of it
  };

  void CheckOfLet(const VarNode& var) {
    if (var.of_let) return;
    Report(absl::StrCat("the variable '", var.name, "' of a let was not made ",
                        "for one (MakeLetVar)"));
  }

  absl::Status Fail(const std::string& message) {
    Report(message);
    return status_;
  }

  void Report(const std::string& message) {
    if (!status_.ok()) return;
    const bool inside =
        !block_stack_.empty() && block_stack_.back().node->name != "root";
    status_ = absl::InvalidArgumentError(
        inside ? absl::StrCat("block \"", block_stack_.back().node->name,
                              "\": ", message)
               : message);
  }

  bool Enter() {
    if (!status_.ok()) return false;
    if (++nodes_ > limits_.max_nodes) {
      Report(absl::StrCat("more than ", limits_.max_nodes, " nodes"));
      return false;
    }
    // Statements and their expressions may each nest to the limit.
    if (++depth_ > 4 * limits_.max_nesting) {
      Report(
          absl::StrCat("nested deeper than ", limits_.max_nesting, " levels"));
      return false;
    }
    return true;
  }

  template <typename Body>
  void Scoped(const Var& var, DataType dtype, const Body& body) {
    if (var->dtype != dtype) {
      Report(absl::StrCat("variable '", var->name, "' of ",
                          var->dtype.ToString(), " is given a ",
                          dtype.ToString()));
    }
    if (!vars_.insert(var.get()).second) {
      Report(absl::StrCat("variable '", var->name, "' is bound twice"));
      return;
    }
    body();
    vars_.erase(var.get());
  }

  void CheckBuffer(const BufferNode& buffer, bool parameter = false) {
    const absl::Status status = CheckBufferSize(buffer, limits_, parameter);
    if (!status.ok()) {
      Report(std::string(status.message()));
      return;
    }
    total_bytes_ += *MemoryBytes(buffer);
  }

  bool CheckDeclared(const BufferNode& buffer) {
    if (declared_.contains(&buffer)) return true;
    Report(absl::StrCat("the buffer '", buffer.name, "' is not declared here"));
    return false;
  }

  void CheckAccess(const BufferNode& buffer, const std::vector<Expr>& indices) {
    if (!CheckDeclared(buffer)) return;
    if (static_cast<int>(indices.size()) != buffer.ndim()) {
      Report(absl::StrCat("'", buffer.name, "' of ", buffer.ndim(),
                          " dimensions is accessed with ", indices.size(),
                          " indices"));
    }
    for (const Expr& index : indices) {
      if (!index->dtype.is_integral()) {
        Report(absl::StrCat("an index of '", buffer.name, "' has dtype ",
                            index->dtype.ToString()));
      }
    }
  }

  void CheckRegion(const BufferRegion& region) {
    if (in_lowering_ || !CheckDeclared(*region.buffer)) return;
    if (static_cast<int>(region.region.size()) != region.buffer->ndim()) {
      Report(absl::StrCat("a region of '", region.buffer->name, "' has ",
                          region.region.size(), " dimensions, not ",
                          region.buffer->ndim()));
    }
    for (const Range& range : region.region) {
      Visit(range.min);
      Visit(range.extent);
    }
  }

  const Limits& limits_;
  const bool in_lowering_;
  absl::Status status_;
  std::unordered_set<const BufferNode*> declared_;
  std::unordered_set<const VarNode*> vars_;
  std::vector<OpenBlock> block_stack_;
  bool in_binding_ = false;
  int64_t total_bytes_ = 0;
  int64_t nodes_ = 0;
  int loops_ = 0;
  int depth_ = 0;
};

}  // namespace

absl::Status CheckBufferSize(const BufferNode& buffer, const Limits& limits,
                             bool parameter) {
  const auto refuse = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the buffer '", buffer.name, "' ", what));
  };
  if (buffer.ndim() > limits.max_dims) {
    return refuse(absl::StrCat("has ", buffer.ndim(),
                               " dimensions; the limit is ", limits.max_dims));
  }
  // Without the effect of strides: strides of 0 need less memory.
  int64_t dense_bytes = buffer.dtype.bytes();
  bool overflow = false;
  for (const int64_t extent : buffer.shape) {
    if (extent < 1) return refuse(absl::StrCat("has an extent of ", extent));
    overflow |= __builtin_mul_overflow(dense_bytes, extent, &dense_bytes);
  }
  if (!buffer.is_dense()) {
    if (!parameter) {
      return refuse("has strides or an offset; only parameters do");
    }
    if (!buffer.strides.empty() &&
        buffer.strides.size() != buffer.shape.size()) {
      return refuse(absl::StrCat("has ", buffer.ndim(), " dimensions and ",
                                 buffer.strides.size(), " strides"));
    }
    if (buffer.elem_offset < 0 ||
        std::any_of(buffer.strides.begin(), buffer.strides.end(),
                    [](int64_t stride) { return stride < 0; })) {
      return refuse("has a negative stride or offset");
    }
  }
  const std::optional<int64_t> bytes = MemoryBytes(buffer);
  if (overflow || dense_bytes > limits.max_buffer_bytes || !bytes ||
      *bytes > limits.max_buffer_bytes) {
    return refuse(absl::StrCat("is too large; the limit is ",
                               limits.max_buffer_bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status Verify(const PrimFunc& function, const Limits& limits) {
  TF_RETURN_IF_ERROR(FunctionVerifier(limits).Run(function));
  return CheckLayoutFree(function);
}

absl::Status VerifyScopes(const PrimFunc& function) {
  Limits limits;
  limits.max_nesting = std::numeric_limits<int>::max() / 4;
  limits.max_loops = std::numeric_limits<int>::max();
  limits.max_nodes = std::numeric_limits<int>::max();
  limits.max_total_bytes = std::numeric_limits<int64_t>::max();
  return FunctionVerifier(limits, /*in_lowering=*/true).Run(function);
}

absl::Status Verify(const IRModule& module, const Limits& limits) {
  if (static_cast<int>(module.functions.size()) > limits.max_functions) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", limits.max_functions, " functions"));
  }
  std::unordered_set<std::string> names;
  for (const PrimFuncPtr& function : module.functions) {
    if (!names.insert(function->name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two functions are named '", function->name, "'"));
    }
    TF_RETURN_IF_ERROR(Verify(*function, limits));
  }
  return absl::OkStatus();
}

bool VerifiesEveryStep() {
#ifndef NDEBUG
  return true;
#else
  static const bool asked = [] {
    const char* value = std::getenv("TILEFARM_VERIFY");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return asked;
#endif
}

}  // namespace tilefarm::ir

#include "compiler/ir/printer.h"

#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/printer_text.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

class Printer {
 public:
  explicit Printer(int indent) : indent_(indent) {}

  std::string Take() { return std::move(out_); }

  void Function(const PrimFunc& function) {
    Line("@T.prim_func");
    for (const Buffer& param : function.params) NameBuffer(param);
    PreOrder(function.body, [&](const Stmt& stmt) {
      if (const auto* block = As<BlockNode>(stmt)) {
        for (const Buffer& buffer : block->allocs) NameBuffer(buffer);
      } else if (const auto* alloc = As<AllocNode>(stmt)) {
        NameBuffer(alloc->buffer);
      }
      return true;
    });
    std::string head = "def " + Identifier(function.name) + "(";
    for (size_t i = 0; i < function.params.size(); ++i) {
      const Buffer& param = function.params[i];
      if (i > 0) head += ", ";
      head += NameBuffer(param) + ": T.Buffer(" + ShapeText(param->shape) +
              ", \"" + param->dtype.ToString() + "\"" + ScopeText(*param) +
              LayoutText(*param) + ")";
    }
    Line(head + "):");
    ++indent_;
    if (!function.attrs.empty()) {
      Line("T.func_attr(" + AttrMapText(function.attrs) + ")");
    }
    const BlockNode* root = function.root();
    if (root == nullptr || !root->iters.empty()) {
      Statement(function.body);
    } else if (root->annotations.empty()) {
      Line("# with T.block(\"root\"):");
      Allocations(*root);
      Statement(root->body);
    } else {
      Line("with T.block(\"root\"):");
      ++indent_;
      Line("T.reads()");
      Line("T.writes()");
      Line("T.block_attr(" + AttrMapText(root->annotations) + ")");
      Allocations(*root);
      Statement(root->body);
      --indent_;
    }
    --indent_;
  }

  void Statement(const Stmt& stmt);
  void Expression(const Expr& expr, int min_precedence, std::string& out);
  void Call(std::string_view name, const std::vector<Expr>& args,
            std::string& out);
  std::string Text(const Expr& expr, int min_precedence = 0) {
    std::string out;
    Expression(expr, min_precedence, out);
    return out;
  }

 private:
  void Line(const std::string& text) {
    out_.append(static_cast<size_t>(indent_) * 4, ' ');
    out_ += text;
    out_ += '\n';
  }

  static std::string LayoutText(const BufferNode& buffer) {
    std::string out;
    if (!buffer.strides.empty()) {
      out += ", strides=" + ShapeText(buffer.strides);
    }
    if (buffer.elem_offset != 0) {
      out += ", elem_offset=" + std::to_string(buffer.elem_offset);
    }
    return out;
  }

  static std::string ScopeText(const BufferNode& buffer) {
    return buffer.scope == "global" ? "" : ", scope=" + Quoted(buffer.scope);
  }

  std::string Unique(const std::string& wanted) {
    const std::string base = Identifier(wanted);
    std::string name = base;
    int& next = suffixes_[base];
    if (!used_.contains(name)) next = 0;
    while (!used_.insert(name).second) {
      name = base + "_" + std::to_string(++next);
    }
    return name;
  }

  std::string NameBuffer(const Buffer& buffer) {
    std::string& name = buffers_[buffer.get()];
    if (name.empty()) name = Unique(buffer->name);
    return name;
  }

  // Gives a variable a name that is valid until Release.
  std::string Bind(const Var& var) {
    std::string name = Unique(var->name);
    vars_[var.get()] = name;
    return name;
  }
  void Release(const Var& var) {
    const auto found = vars_.find(var.get());
    if (found == vars_.end()) return;
    used_.erase(found->second);
    vars_.erase(found);
    // Reset the suffixes, so that a name never depends on scopes that have
    // ended.
    suffixes_.clear();
  }

  std::string Indices(const std::vector<Expr>& indices) {
    if (indices.empty()) return "[()]";
    std::string out = "[";
    for (size_t i = 0; i < indices.size(); ++i) {
      if (i > 0) out += ", ";
      Expression(indices[i], 0, out);
    }
    return out + "]";
  }

  std::string RegionText(const BufferRegion& region) {
    std::string out = NameBuffer(region.buffer);
    if (region.region.empty()) return out + "[()]";
    out += "[";
    for (size_t i = 0; i < region.region.size(); ++i) {
      const auto& [min, extent] = region.region[i];
      if (i > 0) out += ", ";
      Expression(min, 0, out);
      if (!IsConstInt(extent, 1))
        out.append(":").append(Text(End(min, extent)));
    }
    return out + "]";
  }
  // min + extent, simplified.
  static Expr End(const Expr& min, const Expr& extent) {
    const auto* sub = As<BinaryNode>(extent);
    if (sub != nullptr && sub->op == BinaryOp::kSub &&
        StructuralEqual(sub->b, min)) {
      return sub->a;
    }
    const auto length = AsInt(extent);
    const auto* add = As<BinaryNode>(min);
    if (length && add != nullptr && AsInt(add->b)) {
      const int64_t tail = *AsInt(add->b);
      if (add->op == BinaryOp::kAdd) return add->a + (tail + *length);
      if (add->op == BinaryOp::kSub) {
        return *length >= tail ? add->a + (*length - tail)
                               : add->a - (tail - *length);
      }
    }
    return min + extent;
  }
  std::string Regions(const std::vector<BufferRegion>& regions) {
    std::string out;
    for (const BufferRegion& region : regions) {
      if (!out.empty()) out += ", ";
      out += RegionText(region);
    }
    return "(" + out + ")";
  }

  void Allocations(const BlockNode& block) {
    for (const Buffer& buffer : block.allocs) {
      const std::string name = NameBuffer(buffer);
      Line(name + " = T.alloc_buffer(" + ShapeText(buffer->shape) + ", \"" +
           buffer->dtype.ToString() + "\"" + ScopeText(*buffer) + ")");
    }
  }

  void For(const ForNode* loop);
  void Block(const BlockNode& block);
  void Axes(const BlockNode& block);
  void If(const IfNode& branch, const char* word);
  void Body(const Stmt& stmt) {
    ++indent_;
    Statement(stmt);
    --indent_;
  }
  void Binary(const BinaryNode& binary, int min_precedence, std::string& out);

  int indent_;
  std::string out_;
  std::unordered_map<const VarNode*, std::string> vars_;
  std::unordered_map<const BufferNode*, std::string> buffers_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> suffixes_;
  // Extents of open loops that start at 0, for T.axis.remap.
  std::unordered_map<const VarNode*, int64_t> loops_;
};

void Printer::Binary(const BinaryNode& binary, int min_precedence,
                     std::string& out) {
  const int precedence = Precedence(binary.op, binary.dtype.is_float());
  if (precedence < 0) {
    out += CallName(binary.op);
    out += "(";
    Expression(binary.a, 0, out);
    out += ", ";
    Expression(binary.b, 0, out);
    out += ")";
    return;
  }
  const bool parens = precedence < min_precedence;
  if (parens) out += "(";
  // Comparisons chain in Python; other operators associate to the left.
  Expression(binary.a,
             precedence == kPrecComparison ? precedence + 1 : precedence, out);
  out += " ";
  out += BinaryOpName(binary.op);
  out += " ";
  Expression(binary.b, precedence + 1, out);
  if (parens) out += ")";
}

void Printer::Call(std::string_view name, const std::vector<Expr>& args,
                   std::string& out) {
  out += "T.";
  out += name;
  out += "(";
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) out += ", ";
    Expression(args[i], 0, out);
  }
  out += ")";
}

void Printer::Expression(const Expr& expr, int min_precedence,
                         std::string& out) {
  switch (expr->kind) {
    case ExprKind::kVar: {
      const auto& var = static_cast<const VarNode&>(*expr);
      const auto found = vars_.find(&var);
      out += found == vars_.end() ? Identifier(var.name) : found->second;
      return;
    }
    case ExprKind::kIntConst: {
      const auto& node = static_cast<const IntConstNode&>(*expr);
      if (node.dtype.is_index()) {
        out += std::to_string(node.value);
      } else if (node.dtype.is_bool()) {
        out += node.value != 0 ? "T.bool(True)" : "T.bool(False)";
      } else {
        out += "T." + node.dtype.ToString() + "(" +
               (node.dtype.is_uint()
                    ? std::to_string(static_cast<uint64_t>(node.value))
                    : std::to_string(node.value)) +
               ")";
      }
      return;
    }
    case ExprKind::kFloatConst: {
      const auto& node = static_cast<const FloatConstNode&>(*expr);
      out += "T." + node.dtype.ToString() + "(" +
             FloatText(node.value, node.dtype) + ")";
      return;
    }
    case ExprKind::kBinary:
      Binary(static_cast<const BinaryNode&>(*expr), min_precedence, out);
      return;
    case ExprKind::kNot: {
      const bool parens = kPrecNot < min_precedence;
      if (parens) out += "(";
      out += "not ";
      Expression(static_cast<const NotNode&>(*expr).a, kPrecComparison, out);
      if (parens) out += ")";
      return;
    }
    case ExprKind::kCast:
      out += "T.Cast(\"" + expr->dtype.ToString() + "\", ";
      Expression(static_cast<const CastNode&>(*expr).value, 0, out);
      out += ")";
      return;
    case ExprKind::kSelect: {
      const auto& node = static_cast<const SelectNode&>(*expr);
      out += "T.Select(";
      Expression(node.condition, 0, out);
      out += ", ";
      Expression(node.true_value, 0, out);
      out += ", ";
      Expression(node.false_value, 0, out);
      out += ")";
      return;
    }
    case ExprKind::kCall: {
      const auto& node = static_cast<const CallNode&>(*expr);
      if (node.op == Intrinsic::kReinterpret) {
        out += "T.reinterpret(\"" + node.dtype.ToString() + "\", ";
        Expression(node.args[0], 0, out);
        out += ")";
        return;
      }
      return Call(IntrinsicName(node.op), node.args, out);
    }
    case ExprKind::kMachineOp: {
      const auto& node = static_cast<const MachineOpNode&>(*expr);
      return Call(MachineOpName(node.op), node.args, out);
    }
    case ExprKind::kLoad: {
      const auto& node = static_cast<const LoadNode&>(*expr);
      out += NameBuffer(node.buffer);
      if (node.predicate == nullptr) {
        out += Indices(node.indices);
      } else {
        out += ".vload(" + Indices(node.indices) +
               ", predicate=" + Text(node.predicate) + ")";
      }
      return;
    }
    case ExprKind::kLet: {
      const auto& node = static_cast<const LetNode&>(*expr);
      const std::string value = Text(node.value);
      const std::string name = Bind(node.var);
      out += "T.Let(";
      Expression(node.body, 0, out);
      out += ", where={" + name + ": " + value + "})";
      Release(node.var);
      return;
    }
    case ExprKind::kRamp: {
      const auto& node = static_cast<const RampNode&>(*expr);
      out += "T.Ramp(" + Text(node.base) + ", " + Text(node.stride) + ", " +
             std::to_string(node.dtype.lanes) + ")";
      return;
    }
    case ExprKind::kBroadcast: {
      const auto& node = static_cast<const BroadcastNode&>(*expr);
      out += "T.Broadcast(" + Text(node.value) + ", " +
             std::to_string(node.dtype.lanes) + ")";
      return;
    }
  }
}

void Printer::For(const ForNode* loop) {
  std::vector<const ForNode*> loops = {loop};
  const auto plain = [](const ForNode& l) {
    return l.for_kind == ForKind::kSerial && l.annotations.empty() &&
           IsConstInt(l.min, 0);
  };
  if (plain(*loop)) {
    for (const auto* next = As<ForNode>(loop->body);
         next != nullptr && plain(*next); next = As<ForNode>(next->body)) {
      loops.push_back(next);
    }
  }
  std::string names, extents;
  for (const ForNode* l : loops) {
    if (!names.empty()) {
      names += ", ";
      extents += ", ";
    }
    if (!IsConstInt(l->min, 0)) {
      extents += Text(l->min) + ", " + Text(l->min + l->extent);
    } else {
      extents += Text(l->extent);
      if (const auto extent = AsInt(l->extent)) {
        loops_[l->var.get()] = *extent;
      }
    }
    names += Bind(l->var);
  }
  std::string_view word = "range";
  switch (loop->for_kind) {
    case ForKind::kSerial:
      word = loops.size() > 1             ? "T.grid"
             : !loop->annotations.empty() ? "T.serial"
                                          : "range";
      break;
    case ForKind::kParallel:
      word = "T.parallel";
      break;
    case ForKind::kVectorized:
      word = "T.vectorized";
      break;
    case ForKind::kUnrolled:
      word = "T.unroll";
      break;
    case ForKind::kThreadBinding:
      word = "T.thread_binding";
      extents += ", thread=" + Quoted(loop->thread_tag);
      break;
  }
  if (!loop->annotations.empty()) {
    extents += ", annotations=" + AttrMapText(loop->annotations);
  }
  Line("for " + names + " in " + std::string(word) + "(" + extents + "):");
  Body(loops.back()->body);
  for (size_t i = loops.size(); i-- > 0;) {
    loops_.erase(loops[i]->var.get());
    Release(loops[i]->var);
  }
}

void Printer::Axes(const BlockNode& block) {
  const auto remappable = [&](const IterVar& iter) {
    const auto* loop = As<VarNode>(iter.binding);
    if (loop == nullptr || iter.type == IterType::kOpaque ||
        !IsConstInt(iter.dom.min, 0)) {
      return false;
    }
    const auto found = loops_.find(loop);
    return found != loops_.end() && IsConstInt(iter.dom.extent, found->second);
  };
  // Print bindings before the block's own names are declared.
  std::vector<std::string> bindings;
  for (const IterVar& iter : block.iters) {
    bindings.push_back(Text(iter.binding));
  }
  for (size_t i = 0; i < block.iters.size();) {
    size_t end = i;
    while (end < block.iters.size() && remappable(block.iters[end])) ++end;
    if (end - i >= 2) {
      std::string names, kinds, loops;
      for (; i < end; ++i) {
        if (!names.empty()) {
          names += ", ";
          loops += ", ";
        }
        names += Bind(block.iters[i].var);
        kinds += block.iters[i].type == IterType::kSpatial ? 'S' : 'R';
        loops += bindings[i];
      }
      Line(names + " = T.axis.remap(\"" + kinds + "\", [" + loops + "])");
      continue;
    }
    const IterVar& iter = block.iters[i];
    const std::string_view kind = iter.type == IterType::kSpatial  ? "spatial"
                                  : iter.type == IterType::kReduce ? "reduce"
                                                                   : "opaque";
    const std::string domain =
        IsConstInt(iter.dom.min, 0)
            ? Text(iter.dom.extent)
            : absl::StrCat("(", Text(iter.dom.min), ", ",
                           Text(iter.dom.min + iter.dom.extent), ")");
    const std::string name = Bind(iter.var);
    Line(name + " = T.axis." + std::string(kind) + "(" + domain + ", " +
         bindings[i] + ")");
    ++i;
  }
}

void Printer::Block(const BlockNode& block) {
  Line("with T.block(" + Quoted(block.name) + "):");
  ++indent_;
  // The predicate also uses the outer names.
  const std::string predicate =
      IsConstInt(block.predicate, 1) ? "" : Text(block.predicate);
  Axes(block);
  if (!predicate.empty()) Line("T.where(" + predicate + ")");
  Line("T.reads" + Regions(block.reads));
  Line("T.writes" + Regions(block.writes));
  if (!block.annotations.empty()) {
    Line("T.block_attr(" + AttrMapText(block.annotations) + ")");
  }
  Allocations(block);
  if (block.init != nullptr) {
    Line("with T.init():");
    Body(block.init);
  }
  Statement(block.body);
  --indent_;
  for (size_t i = block.iters.size(); i-- > 0;) Release(block.iters[i].var);
}

void Printer::If(const IfNode& branch, const char* word) {
  Line(std::string(word) + " " + Text(branch.condition) + ":");
  Body(branch.then_case);
  if (branch.else_case == nullptr) return;
  if (const auto* next = As<IfNode>(branch.else_case)) {
    If(*next, "elif");
  } else {
    Line("else:");
    Body(branch.else_case);
  }
}

void Printer::Statement(const Stmt& stmt) {
  switch (stmt->kind) {
    case StmtKind::kStore: {
      const auto& node = static_cast<const StoreNode&>(*stmt);
      const std::string name = NameBuffer(node.buffer);
      if (node.predicate == nullptr) {
        Line(name + Indices(node.indices) + " = " + Text(node.value));
      } else {
        Line(name + ".vstore(" + Indices(node.indices) + ", " +
             Text(node.value) + ", predicate=" + Text(node.predicate) + ")");
      }
      return;
    }
    case StmtKind::kFor:
      For(static_cast<const ForNode*>(stmt.get()));
      return;
    case StmtKind::kBlock:
      Block(static_cast<const BlockNode&>(*stmt));
      return;
    case StmtKind::kSeq: {
      const auto& node = static_cast<const SeqNode&>(*stmt);
      if (node.stmts.empty()) Line("T.evaluate(0)");
      for (const Stmt& child : node.stmts) Statement(child);
      return;
    }
    case StmtKind::kIf:
      If(static_cast<const IfNode&>(*stmt), "if");
      return;
    case StmtKind::kLetStmt: {
      const auto& node = static_cast<const LetStmtNode&>(*stmt);
      const std::string value = Text(node.value);
      const std::string name = Bind(node.var);
      // In a suite of its own, since later statements do not see the name.
      Line("with T.LetStmt(" + value + ") as " + name + ":");
      Body(node.body);
      Release(node.var);
      return;
    }
    case StmtKind::kEvaluate:
      Line("T.evaluate(" + Text(static_cast<const EvaluateNode&>(*stmt).value) +
           ")");
      return;
    case StmtKind::kAlloc: {
      const auto& node = static_cast<const AllocNode&>(*stmt);
      Line("with T.allocate(" + ShapeText(node.buffer->shape) + ", \"" +
           node.buffer->dtype.ToString() + "\", " + Quoted(node.buffer->scope) +
           ") as " + NameBuffer(node.buffer) + ":");
      Body(node.body);
      return;
    }
  }
}

}  // namespace

std::string Print(const IRModule& module) {
  std::string out =
      "# from tvm.script import ir as I\n"
      "# from tvm.script import tir as T\n"
      "\n"
      "@I.ir_module\n"
      "class Module:\n";
  bool first = true;
  for (const PrimFuncPtr& function : module.functions) {
    if (!first) out += "\n";
    first = false;
    Printer printer(1);
    printer.Function(*function);
    out += printer.Take();
  }
  if (first) out += "    pass\n";
  return out;
}

std::string Print(const PrimFunc& function) {
  Printer printer(0);
  printer.Function(function);
  return printer.Take();
}

std::string Print(const Stmt& stmt) {
  Printer printer(0);
  printer.Statement(stmt);
  return printer.Take();
}

std::string ToString(const Expr& expr) { return Printer(0).Text(expr); }

}  // namespace tilefarm::ir

#include "compiler/ir/interpreter.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/eval.h"

namespace tilefarm::ir {
namespace {

// A compiled statement. Returns false once the frame has failed.
struct Action {
  virtual ~Action() = default;
  virtual bool Run(Frame& frame) const = 0;
};
using ActionPtr = std::unique_ptr<Action>;

bool Step(Frame& frame) {
  if (--frame.steps_left >= 0) return !frame.failed;
  frame.Fail(absl::StatusCode::kResourceExhausted,
             "the program runs for too many steps");
  return false;
}

struct StoreAction : Action {
  OffsetEval place;
  AnyEval value;
  IntEvalPtr predicate;
  size_t slot;
  DataType dtype;
  int lanes;

  bool Run(Frame& frame) const override {
    if (!Step(frame)) return false;
    if (lanes == 1) {
      if (predicate != nullptr && predicate->Eval(frame) == 0) {
        return !frame.failed;
      }
      const double real = value.real ? value.real->Eval(frame) : 0;
      const int64_t integer = value.integer ? value.integer->Eval(frame) : 0;
      const int64_t at = place.Eval(frame);
      if (frame.failed) return false;
      Write(frame, at, real, integer);
      return true;
    }
    // Read all lanes before writing any.
    struct Lane {
      int64_t at;
      double real;
      int64_t integer;
    };
    std::vector<Lane> out;
    for (frame.lane = 0; frame.lane < lanes; ++frame.lane) {
      if (predicate != nullptr && predicate->Eval(frame) == 0) continue;
      const double real = value.real ? value.real->Eval(frame) : 0;
      const int64_t integer = value.integer ? value.integer->Eval(frame) : 0;
      out.push_back({place.Eval(frame), real, integer});
    }
    frame.lane = 0;
    if (frame.failed) return false;
    for (const Lane& lane : out) {
      Write(frame, lane.at, lane.real, lane.integer);
    }
    return true;
  }

  void Write(Frame& frame, int64_t at, double real, int64_t integer) const {
    if (frame.written[slot] != nullptr) frame.written[slot][at] = 1;
    if (value.real != nullptr) {
      WriteFloat(frame.data[slot], at, dtype, real);
    } else {
      WriteInt(frame.data[slot], at, dtype, integer);
    }
  }
};

struct ForAction : Action {
  IntEvalPtr min, extent;
  size_t slot;
  ActionPtr body;
  bool backwards = false;

  bool Run(Frame& frame) const override {
    const int64_t first = min->Eval(frame);
    const int64_t count = extent->Eval(frame);
    if (frame.failed) return false;
    for (int64_t i = 0; i < count; ++i) {
      frame.ints[slot] = first + (backwards ? count - 1 - i : i);
      if (!Step(frame) || !body->Run(frame)) return false;
    }
    return true;
  }
};

struct SeqAction : Action {
  std::vector<ActionPtr> actions;

  bool Run(Frame& frame) const override {
    for (const ActionPtr& action : actions) {
      if (!action->Run(frame)) return false;
    }
    return true;
  }
};

struct IfAction : Action {
  IntEvalPtr condition;
  ActionPtr then_case, else_case;

  bool Run(Frame& frame) const override {
    const bool taken = condition->Eval(frame) != 0;
    if (!Step(frame)) return false;
    if (taken) return then_case->Run(frame);
    return else_case == nullptr || else_case->Run(frame);
  }
};

struct LetAction : Action {
  AnyEval value;
  size_t slot;
  ActionPtr body;

  bool Run(Frame& frame) const override {
    if (value.real != nullptr) {
      frame.floats[slot] = value.real->Eval(frame);
    } else {
      frame.ints[slot] = value.integer->Eval(frame);
    }
    return Step(frame) && body->Run(frame);
  }
};

struct EvaluateAction : Action {
  AnyEval value;

  bool Run(Frame& frame) const override {
    if (value.real != nullptr) {
      value.real->Eval(frame);
    } else {
      value.integer->Eval(frame);
    }
    return Step(frame);
  }
};

// Workspace, filled with NaN or 0x7f... so that uninitialised reads show.
struct Workspace {
  size_t slot;
  Buffer buffer;
  bool refuse_unwritten;

  // Null: the frame has failed.
  std::unique_ptr<std::byte[]> Allocate(Frame& frame) const {
    const auto elements = static_cast<size_t>(buffer->memory_elements());
    const size_t bytes = elements * static_cast<size_t>(buffer->dtype.bytes());
    const size_t marks = refuse_unwritten ? elements : 0;
    std::unique_ptr<std::byte[]> data(new (std::nothrow)
                                          std::byte[bytes + marks]);
    if (data == nullptr) {
      frame.Fail(absl::StatusCode::kResourceExhausted,
                 absl::StrCat("no memory for the buffer '", buffer->name, "'"));
      return nullptr;
    }
    std::memset(data.get(), buffer->dtype.is_float() ? 0xFF : 0x7F, bytes);
    frame.data[slot] = data.get();
    if (refuse_unwritten) {
      auto* written = reinterpret_cast<uint8_t*>(data.get() + bytes);
      std::memset(written, 0, marks);
      frame.written[slot] = written;
    }
    return data;
  }
};

struct AllocAction : Action {
  Workspace workspace;
  ActionPtr body;

  bool Run(Frame& frame) const override {
    const auto data = workspace.Allocate(frame);
    return data != nullptr && body->Run(frame);
  }
};

struct BlockAction : Action {
  struct Iter {
    IntEvalPtr binding, min;
    size_t slot;
    bool reduce;
  };
  const BlockNode* node;
  std::vector<Iter> iters;
  IntEvalPtr predicate;  // null: always
  std::vector<Workspace> workspaces;
  ActionPtr init, body;

  bool Run(Frame& frame) const override {
    if (!Step(frame)) return false;
    if (predicate != nullptr && predicate->Eval(frame) == 0) {
      return !frame.failed;
    }
    bool first = true;
    for (const Iter& iter : iters) {
      const int64_t value = iter.binding->Eval(frame);
      frame.ints[iter.slot] = value;
      if (iter.reduce) first &= value == iter.min->Eval(frame);
    }
    const BlockNode* outer = std::exchange(frame.block, node);
    std::vector<std::unique_ptr<std::byte[]>> held;
    for (const Workspace& workspace : workspaces) {
      held.push_back(workspace.Allocate(frame));
      if (held.back() == nullptr) return false;
    }
    if (frame.failed) return false;
    if (init != nullptr && first && !init->Run(frame)) return false;
    if (!body->Run(frame)) return false;
    frame.block = outer;
    return true;
  }
};

class ActionCompiler {
 public:
  explicit ActionCompiler(const InterpretOptions& options)
      : options_(options) {}

  EvalCompiler eval;

  ActionPtr Compile(const Stmt& stmt) {
    switch (stmt->kind) {
      case StmtKind::kStore:
        return Store(*As<StoreNode>(stmt));
      case StmtKind::kFor: {
        const auto& node = *As<ForNode>(stmt);
        auto out = std::make_unique<ForAction>();
        out->min = eval.Int(node.min);
        out->extent = eval.Int(node.extent);
        out->slot = static_cast<size_t>(eval.Slot(node.var.get()));
        out->body = Compile(node.body);
        out->backwards = options_.reverse_concurrent_loops &&
                         (node.for_kind == ForKind::kParallel ||
                          node.for_kind == ForKind::kVectorized ||
                          node.thread_tag.starts_with("blockIdx") ||
                          node.thread_tag.starts_with("clusterCtaIdx"));
        return out;
      }
      case StmtKind::kBlock:
        return Block(*As<BlockNode>(stmt));
      case StmtKind::kSeq: {
        auto out = std::make_unique<SeqAction>();
        for (const Stmt& child : As<SeqNode>(stmt)->stmts) {
          out->actions.push_back(Compile(child));
        }
        return out;
      }
      case StmtKind::kIf: {
        const auto& node = *As<IfNode>(stmt);
        auto out = std::make_unique<IfAction>();
        out->condition = eval.Int(node.condition);
        out->then_case = Compile(node.then_case);
        if (node.else_case != nullptr) out->else_case = Compile(node.else_case);
        return out;
      }
      case StmtKind::kLetStmt: {
        const auto& node = *As<LetStmtNode>(stmt);
        auto out = std::make_unique<LetAction>();
        out->value = eval.Any(node.value);
        out->slot = static_cast<size_t>(eval.Slot(node.var.get()));
        out->body = Compile(node.body);
        return out;
      }
      case StmtKind::kEvaluate: {
        auto out = std::make_unique<EvaluateAction>();
        out->value = eval.Any(As<EvaluateNode>(stmt)->value);
        return out;
      }
      case StmtKind::kAlloc: {
        const auto& node = *As<AllocNode>(stmt);
        auto out = std::make_unique<AllocAction>();
        out->workspace = {static_cast<size_t>(eval.Slot(node.buffer.get())),
                          node.buffer, options_.refuse_unwritten};
        out->body = Compile(node.body);
        return out;
      }
    }
    return nullptr;
  }

 private:
  ActionPtr Store(const StoreNode& node) {
    auto out = std::make_unique<StoreAction>();
    out->place = eval.Offset(node.buffer, node.indices);
    out->value = eval.Any(node.value);
    if (node.predicate != nullptr) out->predicate = eval.Int(node.predicate);
    out->slot = static_cast<size_t>(eval.Slot(node.buffer.get()));
    out->dtype = node.buffer->dtype;
    int lanes = node.value->dtype.lanes;
    for (const Expr& index : node.indices) {
      lanes = std::max<int>(lanes, index->dtype.lanes);
    }
    out->lanes = lanes;
    return out;
  }

  ActionPtr Block(const BlockNode& node) {
    auto out = std::make_unique<BlockAction>();
    out->node = &node;
    if (!IsConstInt(node.predicate, 1)) {
      out->predicate = eval.Int(node.predicate);
    }
    for (const IterVar& iter : node.iters) {
      out->iters.push_back({eval.Int(iter.binding), eval.Int(iter.dom.min),
                            static_cast<size_t>(eval.Slot(iter.var.get())),
                            iter.type == IterType::kReduce});
    }
    for (const Buffer& buffer : node.allocs) {
      out->workspaces.push_back({static_cast<size_t>(eval.Slot(buffer.get())),
                                 buffer, options_.refuse_unwritten});
    }
    if (node.init != nullptr) out->init = Compile(node.init);
    out->body = Compile(node.body);
    return out;
  }

  const InterpretOptions& options_;
};

}  // namespace

absl::Status Interpret(const PrimFunc& function,
                       std::span<const std::span<std::byte>> buffers,
                       const InterpretOptions& options) {
  if (buffers.size() != function.params.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", function.name, "' takes ", function.params.size(),
                     " buffers, not ", buffers.size()));
  }
  ActionCompiler compiler(options);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferNode& param = *function.params[i];
    const int64_t bytes = param.memory_elements() * param.dtype.bytes();
    if (static_cast<int64_t>(buffers[i].size()) != bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the buffer for '", param.name, "' has ",
                       buffers[i].size(), " bytes, not ", bytes));
    }
    compiler.eval.Slot(&param);
  }
  const ActionPtr program = compiler.Compile(function.body);
  Frame frame;
  frame.ints.resize(static_cast<size_t>(compiler.eval.num_vars()));
  frame.floats.resize(frame.ints.size());
  frame.data.resize(static_cast<size_t>(compiler.eval.num_buffers()));
  frame.written.resize(frame.data.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    frame.data[static_cast<size_t>(
        compiler.eval.Slot(function.params[i].get()))] = buffers[i].data();
  }
  frame.steps_left = options.max_steps;
  program->Run(frame);
  return frame.status;
}

}  // namespace tilefarm::ir

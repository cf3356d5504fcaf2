#include "compiler/lower/lane_vectorizer.h"

#include <numeric>
#include <utility>
#include <vector>

#include "compiler/arith/canonical.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/guard_math.h"

namespace tilefarm::lower {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::Intrinsic;

bool IsIntegerDivision(BinaryOp op) {
  return op == BinaryOp::kDiv || op == BinaryOp::kMod ||
         op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
}

// Turns scalar expressions that depend on the lane variable into vectors;
// others stay scalar.
class LaneMutator {
 public:
  LaneMutator(IndexMath& math, const ir::Var& lane, int lanes, int active)
      : math_(math), lane_(lane), lanes_(lanes), active_(active) {}

  bool failed() const { return failed_; }
  void set_mask(Expr mask) { mask_ = std::move(mask); }
  // The buffer that the store writes.
  void set_stored(const ir::BufferNode* buffer) { stored_ = buffer; }

  Expr Wide(const Expr& e) {
    return e->dtype.is_vector() ? e : ir::MakeBroadcast(e, lanes_);
  }

  Expr Vec(const Expr& e) {
    switch (e->kind) {
      case ir::ExprKind::kVar: {
        if (e.get() == lane_.get()) {
          return ir::MakeRamp(ir::IntConst(0), ir::IntConst(1), lanes_);
        }
        const auto found = lets_.find(static_cast<const ir::VarNode*>(e.get()));
        return found == lets_.end() ? e : found->second;
      }
      case ir::ExprKind::kIntConst:
      case ir::ExprKind::kFloatConst:
      case ir::ExprKind::kRamp:
      case ir::ExprKind::kBroadcast:
        return e;
      case ir::ExprKind::kBinary:
        return Binary(*ir::As<ir::BinaryNode>(e), e);
      case ir::ExprKind::kNot: {
        const Expr& a = ir::As<ir::NotNode>(e)->a;
        Expr out = Vec(a);
        return out == a ? e : ir::MakeNot(std::move(out));
      }
      case ir::ExprKind::kCast: {
        const Expr& value = ir::As<ir::CastNode>(e)->value;
        Expr out = Vec(value);
        return out == value
                   ? e
                   : ir::MakeCast(e->dtype.with_lanes(out->dtype.lanes), out);
      }
      case ir::ExprKind::kSelect: {
        const auto& select = *ir::As<ir::SelectNode>(e);
        Expr condition = Vec(select.condition);
        Expr a = Vec(select.true_value), b = Vec(select.false_value);
        if (condition == select.condition && a == select.true_value &&
            b == select.false_value) {
          return e;
        }
        if (!condition->dtype.is_vector() && !a->dtype.is_vector() &&
            !b->dtype.is_vector()) {
          return ir::MakeSelect(condition, a, b);
        }
        return ir::MakeSelect(Wide(condition), Wide(a), Wide(b));
      }
      case ir::ExprKind::kCall:
        return Call(*ir::As<ir::CallNode>(e), e);
      case ir::ExprKind::kMachineOp:
        if (const auto& op = *ir::As<ir::MachineOpNode>(e);
            op.op == ir::MachineOp::kAsync) {
          return ir::MakeMachineOp(op.op, {Vec(op.args[0])});
        }
        // Its lanes are those of a loop inside of this one.
        failed_ |= Varies(e);
        return e;
      case ir::ExprKind::kLoad:
        return Load(*ir::As<ir::LoadNode>(e), e);
      case ir::ExprKind::kLet: {
        const auto& let = *ir::As<ir::LetNode>(e);
        Expr value = Vec(let.value);
        ir::Var var = let.var;
        if (value->dtype.is_vector()) {
          var = ir::MakeLetVar(let.var->name, value->dtype);
          lets_[let.var.get()] = var;
        }
        Expr body = Vec(let.body);
        if (value == let.value && body == let.body) return e;
        return ir::MakeLet(var, std::move(value), std::move(body));
      }
    }
    return e;
  }

  // Whether the value differs between lanes.
  bool Varies(const Expr& e) const {
    bool varies = false;
    ir::PostOrderExprs(e, [&](const Expr& x) {
      varies |= x.get() == lane_.get() ||
                (x->kind == ir::ExprKind::kVar &&
                 lets_.count(static_cast<const ir::VarNode*>(x.get())));
    });
    return varies;
  }

  // An int64 index: a scalar, a Ramp if it is linear, or any vector.
  Expr Index(const Expr& e) {
    const Linear linear = math_.Decompose(e);
    Linear rest;
    rest.constant = linear.constant;
    int64_t stride = 0;
    bool nonlinear = false;
    for (const auto& [atom, scale] : linear.terms) {
      if (atom.get() == lane_.get()) {
        stride = scale;
        continue;
      }
      // Loads of inactive lanes have their mask, though all lanes load the
      // same.
      nonlinear |= Varies(atom) || (mask_ != nullptr && ReadsMemory(atom));
      rest.terms.emplace_back(atom, scale);
    }
    if (!nonlinear) {
      if (stride == 0) return rest.ToExpr();
      return ir::MakeRamp(rest.ToExpr(), ir::IntConst(stride), lanes_);
    }
    Expr sum;
    Linear scalar;
    scalar.constant = rest.constant;
    for (const auto& [atom, scale] : linear.terms) {
      const bool opaque = ir::As<ir::BinaryNode>(atom) != nullptr;
      Expr term =
          opaque ? Elementwise(*ir::As<ir::BinaryNode>(atom), atom) : Vec(atom);
      if (!term->dtype.is_vector()) {
        scalar.terms.emplace_back(atom, scale);
        continue;
      }
      if (scale != 1) {
        term = ir::MakeBinary(BinaryOp::kMul, term, Wide(ir::IntConst(scale)));
      }
      sum = sum == nullptr ? term : ir::MakeBinary(BinaryOp::kAdd, sum, term);
    }
    const Expr base = scalar.ToExpr();
    if (sum == nullptr) return base;
    return ir::IsConstInt(base, 0)
               ? sum
               : ir::MakeBinary(BinaryOp::kAdd, sum, Wide(base));
  }

 private:
  // Whether a comparison of indices has one result for all lanes: of 4 * i +
  // lane < 8 * n, that of 4 * i < 8 * n.
  bool AgreesInLanes(const ir::BinaryNode& e) {
    if (!e.a->dtype.is_index() || !ir::IsComparison(e.op) ||
        e.op == BinaryOp::kEQ || e.op == BinaryOp::kNE) {
      return false;
    }
    Linear difference = math_.Decompose(e.a);
    difference.Add(math_.Decompose(e.b), -1);
    // d = step * x + constant + stride * lane, for some whole x: d < 0 if
    // x <= (-1 - constant - stride * lane) // step.
    int64_t step = 0, stride = 0;
    for (const auto& [atom, scale] : difference.terms) {
      if (atom.get() == lane_.get()) {
        stride = scale;
      } else if (Varies(atom) || (mask_ != nullptr && ReadsMemory(atom))) {
        return false;
      } else {
        step = std::gcd(step, scale);
      }
    }
    if (step == 0 || stride == 0) return false;
    // d < 0 and d >= 0 are one question, d <= 0 and d > 0 another.
    const bool with_zero = e.op == BinaryOp::kLE || e.op == BinaryOp::kGT;
    const auto most = [&](int64_t lane) {
      return arith::FloorDivInt(
          (with_zero ? 0 : -1) - difference.constant - stride * lane, step);
    };
    return most(0) == most(lanes_ - 1);
  }

  Expr Elementwise(const ir::BinaryNode& e, const Expr& self) {
    if (AgreesInLanes(e)) {
      const ir::VarMap first = {{lane_.get(), ir::IntConst(0)}};
      return math_.Simplify(ir::Substitute(self, first));
    }
    Expr a = Vec(e.a);
    Expr b;
    const bool logical = e.op == BinaryOp::kAnd || e.op == BinaryOp::kOr;
    if (logical) {
      if (const auto known = ir::AsInt(a)) {
        return (*known != 0) == (e.op == BinaryOp::kAnd) ? Vec(e.b) : a;
      }
    }
    if (logical && a->dtype.is_vector()) {
      // The right side is evaluated, and may access memory, only in lanes where
      // the left side does not decide the result.
      const Expr outer = mask_;
      Narrow(e.op == BinaryOp::kAnd ? a : ir::MakeNot(a));
      b = Vec(e.b);
      mask_ = outer;
    } else {
      b = Vec(e.b);
    }
    if (mask_ != nullptr && e.a->dtype.is_integral() &&
        IsIntegerDivision(e.op) &&
        (!ir::AsInt(e.b) || ir::IsConstInt(e.b, 0))) {
      failed_ = true;
    }
    if (a == e.a && b == e.b) return self;
    if (!a->dtype.is_vector() && !b->dtype.is_vector()) {
      return ir::FoldBinary(e.op, std::move(a), std::move(b));
    }
    return ir::MakeBinary(e.op, Wide(a), Wide(b));
  }

  Expr Binary(const ir::BinaryNode& e, const Expr& self) {
    if (self->dtype.is_index()) {
      switch (e.op) {
        case BinaryOp::kAdd:
        case BinaryOp::kSub:
        case BinaryOp::kMul:
        case BinaryOp::kFloorDiv:
        case BinaryOp::kFloorMod:
          if (mask_ == nullptr || !IsIntegerDivision(e.op) ||
              (ir::AsInt(e.b) && !ir::IsConstInt(e.b, 0))) {
            return Index(self);
          }
          break;
        default:
          break;
      }
    }
    return Elementwise(e, self);
  }

  Expr Call(const ir::CallNode& e, const Expr& self) {
    if (e.op == Intrinsic::kIfThenElse) {
      Expr condition = Vec(e.args[0]);
      if (!condition->dtype.is_vector()) {
        Expr a = Vec(e.args[1]), b = Vec(e.args[2]);
        if (condition == e.args[0] && a == e.args[1] && b == e.args[2]) {
          return self;
        }
        if (a->dtype.is_vector() || b->dtype.is_vector()) {
          a = Wide(a);
          b = Wide(b);
        }
        return ir::IfThenElseExpr(std::move(condition), std::move(a),
                                  std::move(b));
      }
      const Expr outer = mask_;
      Narrow(condition);
      Expr a = Wide(Vec(e.args[1]));
      mask_ = outer;
      Narrow(ir::MakeNot(condition));
      Expr b = Wide(Vec(e.args[2]));
      mask_ = outer;
      return ir::MakeSelect(std::move(condition), std::move(a), std::move(b));
    }
    std::vector<Expr> args;
    bool vector = false;
    for (const Expr& arg : e.args) {
      args.push_back(Vec(arg));
      vector |= args.back()->dtype.is_vector();
    }
    if (args == e.args) return self;
    if (vector) {
      for (Expr& arg : args) arg = Wide(arg);
    }
    return ir::MakeCallLike(e, std::move(args));
  }

  Expr Load(const ir::LoadNode& e, const Expr& self) {
    Expr index = Index(e.indices[0]);
    Expr predicate = e.predicate == nullptr ? nullptr : Vec(e.predicate);
    // An update reads the lanes that it writes, no others: its vector may stay
    // in a register while its neighbours' lanes are written.
    if (mask_ != nullptr && (e.buffer.get() == stored_ || !InBounds(e))) {
      predicate = predicate == nullptr
                      ? mask_
                      : ir::MakeBinary(BinaryOp::kAnd, mask_, Wide(predicate));
    }
    if (predicate != nullptr && predicate->dtype.is_vector()) {
      index = Wide(index);
    }
    if (predicate != nullptr && index->dtype.is_vector()) {
      predicate = Wide(predicate);
    }
    if (index == e.indices[0] && predicate == e.predicate) return self;
    const ir::DataType dtype = e.dtype.with_lanes(index->dtype.lanes);
    return std::make_shared<const ir::LoadNode>(
        e.buffer, std::vector<Expr>{std::move(index)}, dtype,
        std::move(predicate));
  }

  // Whether every lane, even an inactive one, is inside the buffer: then
  // inactive lanes may read, too.
  bool InBounds(const ir::LoadNode& e) {
    const Linear index = math_.Decompose(e.indices[0]);
    Interval reach = math_.Bounds(index);
    if (active_ < lanes_) {
      // The lane's bounds include active lanes only.
      for (const auto& [atom, scale] : index.terms) {
        if (atom.get() == lane_.get()) {
          const int64_t beyond = scale * (lanes_ - active_);
          (beyond > 0 ? reach.hi : reach.lo) += beyond;
        } else if (ir::UsesVar(atom, lane_.get())) {
          return false;
        }
      }
    }
    return reach.Within(0, e.buffer->num_elements() - 1);
  }

  void Narrow(const Expr& condition) {
    mask_ = mask_ == nullptr ? condition
                             : ir::MakeBinary(BinaryOp::kAnd, mask_, condition);
  }

  IndexMath& math_;
  const ir::Var lane_;
  const int lanes_;
  const int active_;
  Expr mask_;
  const ir::BufferNode* stored_ = nullptr;
  ir::VarMap lets_;
  bool failed_ = false;
};

// Replaces the chunk's variable by start + lane.
Expr AtLane(IndexMath& math, const Expr& e, const LaneChunk& chunk,
            const ir::Var& lane) {
  return math.Simplify(
      ir::Substitute(e, {{chunk.var, chunk.start + Expr(lane)}}));
}

}  // namespace

ir::Stmt VectorizeStore(IndexMath& math, const ir::StoreNode& store,
                        const Expr& condition, const LaneChunk& chunk) {
  if (chunk.lanes == 1) {
    const ir::VarMap at = {{chunk.var, chunk.start}};
    ir::Stmt scalar = ir::MakeStore(
        store.buffer, {math.Simplify(ir::Substitute(store.indices[0], at))},
        math.Simplify(ir::Substitute(store.value, at)));
    if (condition == nullptr) return scalar;
    const Expr guard = math.Simplify(ir::Substitute(condition, at));
    if (const auto known = ir::AsInt(guard)) {
      return *known != 0 ? scalar : ir::NoOp();
    }
    return ir::MakeIf(guard, std::move(scalar));
  }
  const ir::Var lane = ir::MakeVar("lane");
  const size_t mark = math.Mark();
  math.Bind(lane.get(), 0, chunk.active - 1);
  LaneMutator mutator(math, lane, chunk.lanes, chunk.active);
  mutator.set_stored(store.buffer.get());
  Expr mask;
  const auto add_mask = [&](Expr more) {
    mask = mask == nullptr ? std::move(more)
                           : ir::MakeBinary(BinaryOp::kAnd, mask, more);
    mutator.set_mask(mask);
  };
  if (chunk.active < chunk.lanes) {
    add_mask(ir::MakeBinary(
        BinaryOp::kLT,
        ir::MakeRamp(ir::IntConst(0), ir::IntConst(1), chunk.lanes),
        ir::MakeBroadcast(ir::IntConst(chunk.active), chunk.lanes)));
  }
  Expr guard;
  ir::Stmt out;
  if (condition != nullptr) {
    const Expr at = AtLane(math, condition, chunk, lane);
    Expr wide = mutator.Vec(at);
    if (wide->dtype.is_vector()) {
      add_mask(std::move(wide));
    } else {
      guard = std::move(wide);
    }
  }
  if (guard == nullptr || !ir::IsConstInt(guard, 0)) {
    Expr index = mutator.Index(AtLane(math, store.indices[0], chunk, lane));
    Expr value = mutator.Vec(AtLane(math, store.value, chunk, lane));
    // Lanes beyond the end of the loop may read, but never write.
    if (index->dtype.is_vector() && !mutator.failed()) {
      out = ir::MakeStore(store.buffer, {std::move(index)}, mutator.Wide(value),
                          mask);
      if (guard != nullptr && !ir::IsConstInt(guard, 1)) {
        out = ir::MakeIf(guard, std::move(out));
      }
    }
  } else {
    out = ir::NoOp();
  }
  math.Restore(mark);
  return out;
}

Expr VectorizeValue(IndexMath& math, const Expr& value,
                    const LaneChunk& chunk) {
  const ir::Var lane = ir::MakeVar("lane");
  const size_t mark = math.Mark();
  math.Bind(lane.get(), 0, chunk.active - 1);
  LaneMutator mutator(math, lane, chunk.lanes, chunk.active);
  Expr wide = mutator.Wide(mutator.Vec(AtLane(math, value, chunk, lane)));
  math.Restore(mark);
  return mutator.failed() ? nullptr : wide;
}

bool LinearInLanes(IndexMath& math, const ir::StoreNode& store,
                   const LaneChunk& chunk) {
  const ir::Var lane = ir::MakeVar("lane");
  const size_t mark = math.Mark();
  math.Bind(lane.get(), 0, chunk.lanes - 1);
  LaneMutator mutator(math, lane, chunk.lanes, chunk.active);
  bool linear = true;
  const auto check = [&](const Expr& index) {
    if (!linear || !ir::UsesVar(index, chunk.var)) return;
    const Expr at = AtLane(math, index, chunk, lane);
    linear = mutator.Index(at)->kind == ir::ExprKind::kRamp ||
             !ir::UsesVar(at, lane.get());
  };
  check(store.indices[0]);
  ir::PostOrderExprs(store.value, [&](const Expr& e) {
    if (const auto* load = ir::As<ir::LoadNode>(e)) check(load->indices[0]);
    // A comparison of linear operands is one vector comparison, or constant.
    const auto* binary = ir::As<ir::BinaryNode>(e);
    if (binary != nullptr && ir::IsComparison(binary->op) &&
        binary->a->dtype.is_index()) {
      check(binary->a);
      check(binary->b);
    }
  });
  math.Restore(mark);
  return linear;
}

}  // namespace tilefarm::lower

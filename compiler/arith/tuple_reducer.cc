#include "compiler/arith/tuple_reducer.h"

#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/scaled_sum.h"
#include "compiler/ir/identity.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::arith {
namespace {

using ir::BinaryOp;
using ir::Expr;

// All orders of values of three tuples of so many positions are looked at.
constexpr size_t kMostPositions = 3;

// --- The statement ---

struct Update {
  std::vector<const ir::StoreNode*> stores;
  std::vector<Expr> values;  // without lets
};

bool LoadsAny(const Expr& e, const std::vector<const ir::StoreNode*>& stores) {
  bool loads = false;
  ir::PostOrderExprs(e, [&](const Expr& at) {
    const auto* load = ir::As<ir::LoadNode>(at);
    if (load == nullptr) return;
    for (const ir::StoreNode* store : stores) {
      loads |= load->buffer == store->buffer;
    }
  });
  return loads;
}

// Lets around stores of different buffers, whose values read none of the stores
// before them.
std::optional<Update> ReadUpdate(const ir::Stmt& stmt) {
  ir::VarMap lets;
  ir::Stmt body = stmt;
  while (const auto* let = ir::As<ir::LetStmtNode>(body)) {
    lets[let->var.get()] = ir::Substitute(let->value, lets);
    body = let->body;
  }
  std::vector<ir::Stmt> stmts = {body};
  if (const auto* seq = ir::As<ir::SeqNode>(body)) stmts = seq->stmts;
  Update update;
  for (const ir::Stmt& s : stmts) {
    const auto* store = ir::As<ir::StoreNode>(s);
    if (store == nullptr || store->predicate != nullptr ||
        LoadsAny(store->value, update.stores)) {
      return std::nullopt;
    }
    for (const ir::StoreNode* other : update.stores) {
      if (other->buffer == store->buffer) return std::nullopt;
    }
    update.stores.push_back(store);
    update.values.push_back(ir::Substitute(store->value, lets));
  }
  for (const ir::StoreNode* store : update.stores) {
    for (const Expr& index : store->indices) {
      for (const auto& [var, value] : lets) {
        if (ir::UsesVar(index, var)) return std::nullopt;
      }
      if (LoadsAny(index, update.stores)) return std::nullopt;
    }
  }
  return update;
}

// --- Values that are combined each for itself ---

// The term of `element op term`.
Expr TermOf(const Expr& value, const ir::StoreNode& store, BinaryOp& op) {
  const auto* binary = ir::As<ir::BinaryNode>(value);
  if (binary == nullptr ||
      ir::IdentityOf(binary->op, store.buffer->dtype) == nullptr) {
    return nullptr;
  }
  op = binary->op;
  if (IsElementOf(binary->a, store)) return binary->b;
  if (IsElementOf(binary->b, store)) return binary->a;
  return nullptr;
}

// --- Values that are chosen together ---

// What an integer is before it is converted to other types of integers.
Expr WithoutCasts(const Expr& e) {
  const auto* cast = ir::As<ir::CastNode>(e);
  if (cast == nullptr || !cast->dtype.is_integral() ||
      !cast->value->dtype.is_integral()) {
    return e;
  }
  return WithoutCasts(cast->value);
}

const ir::SelectNode* AsChoice(const Expr& e) {
  return ir::As<ir::SelectNode>(e);
}

const ir::CallNode* AsBranch(const Expr& e) {
  const auto* call = ir::As<ir::CallNode>(e);
  return call != nullptr && call->op == ir::Intrinsic::kIfThenElse ? call
                                                                   : nullptr;
}

bool IsExtremum(const ir::BinaryNode& e) {
  return e.op == BinaryOp::kMin || e.op == BinaryOp::kMax;
}

// Reads values that choose between the elements and the terms.
class ChoiceReader {
 public:
  ChoiceReader(const Update& update, const std::vector<size_t>& positions,
               TupleReducer& reducer, IndexMath& math)
      : update_(update),
        positions_(positions),
        reducer_(reducer),
        math_(math) {}

  bool Run() {
    for (const size_t k : positions_) {
      if (!FindTerm(update_.values[k], k) || reducer_.terms[k] == nullptr) {
        return false;
      }
    }
    for (const size_t k : positions_) {
      reducer_.combined[k] = Value(update_.values[k], k);
      if (reducer_.combined[k] == nullptr) return false;
    }
    return true;
  }

 private:
  // Adds what is chosen at position k, other than its element.
  bool FindTerm(const Expr& value, size_t k) {
    const Expr e = WithoutCasts(value);
    if (const auto* choice = AsChoice(e)) {
      return FindTerm(choice->true_value, k) &&
             FindTerm(choice->false_value, k);
    }
    if (const auto* branch = AsBranch(e)) {
      return FindTerm(branch->args[1], k) && FindTerm(branch->args[2], k);
    }
    const auto* binary = ir::As<ir::BinaryNode>(e);
    if (binary != nullptr && IsExtremum(*binary)) {
      return FindTerm(binary->a, k) && FindTerm(binary->b, k);
    }
    if (IsElementOf(e, *update_.stores[k])) return true;
    if (LoadsAny(e, update_.stores) || !Fits(e, k)) return false;
    Expr& term = reducer_.terms[k];
    if (term == nullptr) {
      term = ir::MakeCast(update_.stores[k]->buffer->dtype, e);
      return true;
    }
    return ExprEqual(WithoutCasts(term), e);
  }

  // Whether converting it to the type of the elements keeps its value.
  bool Fits(const Expr& e, size_t k) {
    const ir::DataType type = update_.stores[k]->buffer->dtype;
    if (e->dtype == type) return true;
    if (!e->dtype.is_index() || !type.is_int()) return false;
    const Interval bounds = math_.Bounds(e);
    const int64_t most = static_cast<int64_t>(~uint64_t{0} >> (65 - type.bits));
    return bounds.bounded() && bounds.Within(-most, most);
  }

  // The element or the term at a position; null: it is neither.
  Expr Leaf(const Expr& value, size_t* position) {
    const Expr e = WithoutCasts(value);
    for (const size_t k : positions_) {
      if (value->dtype.is_integral() &&
          value->dtype.bits < update_.stores[k]->buffer->dtype.bits) {
        continue;
      }
      *position = k;
      if (IsElementOf(e, *update_.stores[k])) return reducer_.left[k];
      if (ExprEqual(e, WithoutCasts(reducer_.terms[k]))) {
        return reducer_.right[k];
      }
    }
    return nullptr;
  }

  Expr Value(const Expr& value, size_t k) {
    const Expr e = WithoutCasts(value);
    const auto* binary = ir::As<ir::BinaryNode>(e);
    if (binary != nullptr && IsExtremum(*binary)) {
      const Expr a = Value(binary->a, k), b = Value(binary->b, k);
      return a == nullptr || b == nullptr ? nullptr
                                          : ir::MakeBinary(binary->op, a, b);
    }
    if (const auto* choice = AsChoice(e)) {
      return Choose(choice->condition, choice->true_value, choice->false_value,
                    k);
    }
    if (const auto* branch = AsBranch(e)) {
      return Choose(branch->args[0], branch->args[1], branch->args[2], k);
    }
    size_t position = k;
    const Expr leaf = Leaf(value, &position);
    return position == k ? leaf : nullptr;
  }

  Expr Choose(const Expr& condition, const Expr& a, const Expr& b, size_t k) {
    const Expr where = Condition(condition);
    const Expr first = Value(a, k), second = Value(b, k);
    if (where == nullptr || first == nullptr || second == nullptr) {
      return nullptr;
    }
    return ir::MakeSelect(where, first, second);
  }

  Expr Condition(const Expr& e) {
    if (const auto* no = ir::As<ir::NotNode>(e)) {
      const Expr a = Condition(no->a);
      return a == nullptr ? nullptr : ir::MakeNot(a);
    }
    const auto* binary = ir::As<ir::BinaryNode>(e);
    if (binary == nullptr) return nullptr;
    if (binary->op == BinaryOp::kAnd || binary->op == BinaryOp::kOr) {
      const Expr a = Condition(binary->a), b = Condition(binary->b);
      return a == nullptr || b == nullptr ? nullptr
                                          : ir::MakeBinary(binary->op, a, b);
    }
    if (!ir::IsComparison(binary->op)) return nullptr;
    size_t first = 0, second = 0;
    const Expr a = Leaf(binary->a, &first), b = Leaf(binary->b, &second);
    if (a == nullptr || b == nullptr || first != second) return nullptr;
    return ir::MakeBinary(binary->op, a, b);
  }

  const Update& update_;
  const std::vector<size_t>& positions_;
  TupleReducer& reducer_;
  IndexMath& math_;
};

// --- Whether the order of choices matters ---

// A tuple of small integers: choices only depend on the values' order.
using Tuple = std::array<int, kMostPositions>;

class Cases {
 public:
  Cases(const TupleReducer& reducer, const std::vector<size_t>& positions)
      : reducer_(reducer), positions_(positions) {}

  Tuple Combine(const Tuple& left, const Tuple& right) const {
    Tuple out{};
    for (size_t i = 0; i < positions_.size(); ++i) {
      out[i] = Evaluate(reducer_.combined[positions_[i]], left, right);
    }
    return out;
  }

  // All tuples of values within [first, last].
  std::vector<Tuple> Tuples(int first, int last) const {
    std::vector<Tuple> out = {Tuple{}};
    for (size_t i = 0; i < positions_.size(); ++i) {
      std::vector<Tuple> longer;
      for (Tuple tuple : out) {
        for (int value = first; value <= last; ++value) {
          tuple[i] = value;
          longer.push_back(tuple);
        }
      }
      out = std::move(longer);
    }
    return out;
  }

 private:
  int Evaluate(const Expr& e, const Tuple& left, const Tuple& right) const {
    if (const auto* select = AsChoice(e)) {
      return Evaluate(select->condition, left, right) != 0
                 ? Evaluate(select->true_value, left, right)
                 : Evaluate(select->false_value, left, right);
    }
    if (const auto* no = ir::As<ir::NotNode>(e)) {
      return Evaluate(no->a, left, right) == 0;
    }
    const auto* binary = ir::As<ir::BinaryNode>(e);
    if (binary == nullptr) {
      for (size_t i = 0; i < positions_.size(); ++i) {
        if (e == reducer_.left[positions_[i]]) return left[i];
        if (e == reducer_.right[positions_[i]]) return right[i];
      }
      TF_CHECK(false);
    }
    const Expr value = ir::FoldBinary(
        binary->op, ir::IntConst(Evaluate(binary->a, left, right)),
        ir::IntConst(Evaluate(binary->b, left, right)));
    return static_cast<int>(*ir::AsInt(value));
  }

  const TupleReducer& reducer_;
  const std::vector<size_t>& positions_;
};

// Whether choices commute and associate; finds their identities, each the
// lowest or the highest value there is.
bool OrderIsFree(const std::vector<size_t>& positions, TupleReducer& reducer) {
  const Cases cases(reducer, positions);
  // Three values are in every order among 0, 1 and 2.
  const std::vector<Tuple> all = cases.Tuples(0, 2);
  for (const Tuple& a : all) {
    if (cases.Combine(a, a) != a) return false;
    for (const Tuple& b : all) {
      const Tuple both = cases.Combine(a, b);
      if (both != cases.Combine(b, a)) return false;
      for (const Tuple& c : all) {
        if (cases.Combine(both, c) != cases.Combine(a, cases.Combine(b, c))) {
          return false;
        }
      }
    }
  }
  // Beside the extremes, which other tuples may have as well.
  const int lowest = 0, highest = 4;
  const std::vector<Tuple> values = cases.Tuples(lowest, highest);
  for (unsigned choice = 0; choice < 1u << positions.size(); ++choice) {
    Tuple identity{};
    for (size_t i = 0; i < positions.size(); ++i) {
      identity[i] = (choice >> i & 1) != 0 ? highest : lowest;
    }
    bool is_identity = true;
    for (const Tuple& value : values) {
      is_identity &= cases.Combine(identity, value) == value &&
                     cases.Combine(value, identity) == value;
    }
    if (!is_identity) continue;
    for (size_t i = 0; i < positions.size(); ++i) {
      const size_t k = positions[i];
      reducer.identities[k] = ir::IdentityOf(
          identity[i] == highest ? BinaryOp::kMin : BinaryOp::kMax,
          reducer.stores[k]->buffer->dtype);
    }
    return true;
  }
  return false;
}

}  // namespace

std::vector<Expr> TupleReducer::Combine(const std::vector<Expr>& lefts,
                                        const std::vector<Expr>& rights) const {
  ir::VarMap values;
  for (size_t k = 0; k < stores.size(); ++k) {
    values[left[k].get()] = lefts[k];
    values[right[k].get()] = rights[k];
  }
  std::vector<Expr> out;
  for (const Expr& e : combined) out.push_back(ir::Substitute(e, values));
  return out;
}

std::optional<TupleReducer> MatchTupleReducer(const ir::Stmt& update_stmt,
                                              IndexMath& math) {
  const std::optional<Update> update = ReadUpdate(update_stmt);
  if (!update) return std::nullopt;
  TupleReducer reducer;
  reducer.stores = update->stores;
  const size_t count = reducer.stores.size();
  reducer.terms.resize(count);
  reducer.identities.resize(count);
  reducer.combined.resize(count);
  reducer.ops.resize(count);
  std::vector<size_t> chosen;
  for (size_t k = 0; k < count; ++k) {
    const ir::StoreNode& store = *reducer.stores[k];
    const ir::DataType type = store.buffer->dtype;
    reducer.left.push_back(ir::MakeVar(absl::StrCat("left", k), type));
    reducer.right.push_back(ir::MakeVar(absl::StrCat("right", k), type));
    BinaryOp op;
    const Expr term = TermOf(update->values[k], store, op);
    if (term == nullptr || LoadsAny(term, reducer.stores)) {
      chosen.push_back(k);
      continue;
    }
    reducer.terms[k] = term;
    reducer.identities[k] = ir::IdentityOf(op, type);
    reducer.combined[k] = ir::MakeBinary(op, reducer.left[k], reducer.right[k]);
    reducer.ops[k] = op;
  }
  if (chosen.empty()) return reducer;
  if (chosen.size() > kMostPositions ||
      !ChoiceReader(*update, chosen, reducer, math).Run() ||
      !OrderIsFree(chosen, reducer)) {
    return std::nullopt;
  }
  return reducer;
}

ir::Stmt AssignTogether(const std::vector<ir::Buffer>& targets,
                        const std::vector<std::vector<Expr>>& indices,
                        const std::vector<Expr>& values) {
  if (targets.size() == 1) {
    return ir::MakeStore(targets[0], indices[0], values[0]);
  }
  std::vector<ir::Var> vars;
  std::vector<ir::Stmt> stores;
  for (size_t k = 0; k < targets.size(); ++k) {
    vars.push_back(ir::MakeLetVar("v_" + targets[k]->name, targets[k]->dtype));
    stores.push_back(ir::MakeStore(targets[k], indices[k], vars[k]));
  }
  ir::Stmt out = ir::MakeSeq(std::move(stores));
  for (size_t k = targets.size(); k-- > 0;) {
    out = std::make_shared<const ir::LetStmtNode>(vars[k], values[k],
                                                  std::move(out));
  }
  return out;
}

}  // namespace tilefarm::arith

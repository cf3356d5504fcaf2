#include "compiler/lower/dot_lanes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/lane_vectorizer.h"

namespace tilefarm::lower {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using ir::MachineOp;
using target::Target;

// One product: two loads, each widened to the type of the sum.
struct Product {
  const ir::LoadNode* a;
  const ir::LoadNode* b;
};

// The terms of a sum, in the order of the text.
void AddTerms(const Expr& e, std::vector<Expr>* terms) {
  const auto* sum = ir::As<ir::BinaryNode>(e);
  if (sum != nullptr && sum->op == BinaryOp::kAdd) {
    AddTerms(sum->a, terms);
    AddTerms(sum->b, terms);
  } else {
    terms->push_back(e);
  }
}

std::optional<Product> AsProduct(const Expr& e) {
  const auto* product = ir::As<ir::BinaryNode>(e);
  if (product == nullptr || product->op != BinaryOp::kMul) return std::nullopt;
  const Product result{WidenedLoad(product->a), WidenedLoad(product->b)};
  if (result.a == nullptr || result.b == nullptr) return std::nullopt;
  return result;
}

// Products in one instruction's group; 0: there is no instruction for these
// types on any target.
size_t GroupOf(DataType a, DataType b, DataType sum) {
  if (sum == DataType::Int(32) && a.is_integral() && b.is_integral()) {
    if (a.bits == 8 && b.bits == 8 && !a.is_bool() && !b.is_bool()) return 4;
    if (a == DataType::Int(16) && b == DataType::Int(16)) return 2;
  }
  if (sum == DataType::Float(32) && a == DataType::BFloat16() && a == b) {
    return 2;
  }
  return 0;
}

bool HasInstruction(const Target& target, DataType a, DataType b,
                    int64_t lanes) {
  using enum target::Capability;
  if (a == DataType::BFloat16()) {
    return (lanes == 4 && target.Has(kBFloat16Dot128)) ||
           (lanes == 8 && target.Has(kBFloat16Dot256)) ||
           (lanes == 16 && target.Has(kBFloat16Dot512));
  }
  if (a.bits == 16) {
    return (lanes == 4 && target.Has(kInt16Dot128)) ||
           (lanes == 8 && target.Has(kInt16Dot256)) ||
           (lanes == 16 && target.Has(kInt16Dot512));
  }
  if (a.is_int() == b.is_int()) {
    return (lanes == 4 && target.Has(kByteDot128)) ||
           (lanes == 8 && target.Has(kByteDot256));
  }
  return (lanes == 4 && target.Has(kMixedByteDot128)) ||
         (lanes == 8 && target.Has(kMixedByteDot256)) ||
         (lanes == 16 && target.Has(kMixedByteDot512));
}

// The operation of the target; nullopt if it has none.
std::optional<MachineOp> FindOp(const Target& target, DataType a, DataType b,
                                int64_t lanes) {
  if (HasInstruction(target, a, b, lanes)) return MachineOp::kDotProduct;
  using enum target::Capability;
  if (a.is_integral() && ((lanes == 8 && target.Has(kInt16PairProduct256)) ||
                          (lanes == 16 && target.Has(kInt16PairProduct512)))) {
    return MachineOp::kPairDotProduct;
  }
  return std::nullopt;
}

// One side of all products: consecutive elements, group after group.
class Side {
 public:
  Side(IndexMath& math, const LaneChunk& chunk) : math_(math), chunk_(chunk) {}

  // The distance to the first operand; nullopt where it is not constant.
  std::optional<int64_t> Distance(const ir::LoadNode& load) {
    if (first_ == nullptr) first_ = &load;
    if (load.buffer != first_->buffer) return std::nullopt;
    return math_.Difference(load.indices[0], first_->indices[0]);
  }

  // The operand, `load` being the first of its group; null where the groups of
  // neighbouring lanes are not neighbours.
  Expr Operand(const ir::LoadNode& load, int64_t group) {
    const Expr scalar = ir::Load(load.buffer, load.indices);
    const Expr vector = VectorizeValue(math_, scalar, chunk_);
    if (const auto* same = ir::As<ir::BroadcastNode>(vector)) {
      const auto* at = ir::As<ir::LoadNode>(same->value);
      return at == nullptr ? nullptr : Group(at->buffer, at->indices[0], group);
    }
    const auto* lanes = ir::As<ir::LoadNode>(vector);
    const auto* ramp =
        lanes == nullptr ? nullptr : ir::As<ir::RampNode>(lanes->indices[0]);
    if (ramp == nullptr || !ir::IsConstInt(ramp->stride, group)) return nullptr;
    return Group(load.buffer, ramp->base, group * chunk_.lanes);
  }

 private:
  static Expr Group(const ir::Buffer& buffer, const Expr& base, int64_t count) {
    return ir::Load(
        buffer, {ir::MakeRamp(base, ir::IntConst(1), static_cast<int>(count))});
  }

  IndexMath& math_;
  const LaneChunk& chunk_;
  const ir::LoadNode* first_ = nullptr;
};

}  // namespace

ir::Stmt DotLanes(IndexMath& math, const ir::ForNode& loop,
                  const ir::Stmt& body, const Target& target) {
  const auto lanes = ir::AsInt(loop.extent);
  const auto* store = ir::As<ir::StoreNode>(body);
  if (!lanes || *lanes > 64 || !ir::IsConstInt(loop.min, 0) ||
      store == nullptr || store->predicate != nullptr ||
      store->indices[0]->dtype.is_vector()) {
    return nullptr;
  }
  const LaneChunk chunk{loop.var.get(), ir::IntConst(0),
                        static_cast<int>(*lanes), static_cast<int>(*lanes)};
  std::vector<Expr> terms;
  AddTerms(store->value, &terms);
  const auto* sums = ir::As<ir::LoadNode>(terms[0]);
  if (sums == nullptr || sums->buffer != store->buffer ||
      sums->predicate != nullptr ||
      !SameExpr(sums->indices[0], store->indices[0])) {
    return nullptr;
  }
  std::vector<Product> products;
  for (size_t i = 1; i < terms.size(); ++i) {
    const std::optional<Product> product = AsProduct(terms[i]);
    if (!product) return nullptr;
    products.push_back(*product);
  }
  if (products.empty()) return nullptr;
  const DataType a_type = products[0].a->dtype, b_type = products[0].b->dtype;
  const size_t group = GroupOf(a_type, b_type, store->value->dtype);
  const auto op = FindOp(target, a_type, b_type, *lanes);
  if (group != products.size() || !op) return nullptr;

  // Which product comes first in a group; all must be there, in step.
  Side a(math, chunk), b(math, chunk);
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < products.size(); ++i) {
    const auto at = a.Distance(*products[i].a);
    if (!at || at != b.Distance(*products[i].b)) return nullptr;
    order.emplace_back(*at, i);
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i].first != order[0].first + static_cast<int64_t>(i)) {
      return nullptr;
    }
  }
  const Product& first = products[order[0].second];
  const auto size = static_cast<int64_t>(group);
  const Expr left = a.Operand(*first.a, size);
  const Expr right = b.Operand(*first.b, size);
  const Expr into = VectorizeValue(math, terms[0], chunk);
  const auto* whole = ir::As<ir::LoadNode>(into);
  const auto* ramp =
      whole == nullptr ? nullptr : ir::As<ir::RampNode>(whole->indices[0]);
  if (left == nullptr || right == nullptr || ramp == nullptr ||
      !ir::IsConstInt(ramp->stride, 1)) {
    return nullptr;
  }
  return ir::MakeStore(store->buffer, {whole->indices[0]},
                       ir::MakeMachineOp(*op, {left, right, into}));
}

}  // namespace tilefarm::lower

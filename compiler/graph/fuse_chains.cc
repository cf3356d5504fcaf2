// Chains: a product whose rows another product makes, with sums over rows
// between them, becomes one function, so that a few rows at a time go from the
// first product to the last. Attention is one:
//
//   s = matmul(q, k)               # (12, 128, 128), scaled and masked
//   p = softmax(s)                 # (12, 128, 128)
//   o = matmul(p, v)               # (12, 128, 64)
//
// The schedule decides: its space has both the chain by tiles of rows
// (chain_products.cc) and one product after the other.
#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/merge_calls.h"
#include "compiler/graph/nests.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/uses.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;

// Calls that are looked at between two products.
constexpr size_t kMostCallsBetween = 32;

// Whether the nest reads row r of `buffer` for row r of its result alone; the
// rows are numbered by the first `dims` indices.
bool ReadsRows(const Nest& nest, const ir::Buffer& buffer, size_t dims) {
  bool rows = true;
  ir::PostOrderExprs(nest.store->value, [&](const ir::Expr& expr) {
    const auto* load = As<ir::LoadNode>(expr);
    if (load == nullptr || load->buffer != buffer) return;
    rows &= load->indices.size() >= dims && nest.store->indices.size() >= dims;
    for (size_t d = 0; rows && d < dims; ++d) {
      // The only row may be read at 0.
      rows = buffer->shape[d] == nest.store->buffer->shape[d] &&
             (buffer->shape[d] == 1 ||
              ir::StructuralEqual(load->indices[d], nest.store->indices[d]));
    }
  });
  return rows;
}

// Whether it is a product of matrices of floats: each element of a factor has
// one place, other than in the windows of a convolution.
bool IsFloatProduct(const Nest& nest) {
  if (!nest.store->buffer->dtype.is_float() || !SummedProductOf(nest)) {
    return false;
  }
  bool plain = true;
  ir::PostOrderExprs(nest.store->value, [&](const ir::Expr& expr) {
    const auto* load = As<ir::LoadNode>(expr);
    if (load == nullptr) return;
    for (const ir::Expr& index : load->indices) {
      plain &= As<ir::VarNode>(index) != nullptr || ir::IsConstInt(index, 0);
    }
  });
  return plain;
}

bool Reads(const Nest& nest, const ir::Buffer& buffer) {
  return std::ranges::count(nest.reads, buffer) > 0;
}

class ChainFinder {
 public:
  explicit ChainFinder(const Graph& graph) : graph_(graph), uses_(graph) {
    for (const Call& call : graph.calls) {
      nests_.push_back(NestsOf(*call.function));
      const auto& nests = nests_.back();
      has_product_.push_back(nests &&
                             std::ranges::any_of(*nests, IsFloatProduct));
    }
  }

  // The chain that ends with the call, its members ascending; empty: none.
  std::vector<int> EndingWith(int last) const {
    if (!has_product_[static_cast<size_t>(last)]) return {};
    const Call& call = CallAt(last);
    for (const Nest& nest : NestsAt(last)) {
      if (!IsFloatProduct(nest) || MultipliesConstants(call, nest)) continue;
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        const ir::Buffer& param = call.function->params[i];
        const size_t dims = param->shape.empty() ? 0 : param->shape.size() - 1;
        if (dims == 0 || !Reads(nest, param) || !ReadsRows(nest, param, dims)) {
          continue;
        }
        const std::set<int> members = MembersUpTo(call.inputs[i]);
        if (!members.empty() && IsChain(members, last, call.inputs[i], dims)) {
          std::vector<int> chain{members.begin(), members.end()};
          chain.push_back(last);
          return chain;
        }
      }
    }
    return {};
  }

 private:
  const Call& CallAt(int call) const {
    return graph_.calls[static_cast<size_t>(call)];
  }
  const std::vector<Nest>& NestsAt(int call) const {
    return *nests_[static_cast<size_t>(call)];
  }

  bool MultipliesConstants(const Call& call, const Nest& nest) const {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (graph_.values[call.inputs[i]].constant != nullptr &&
          Reads(nest, call.function->params[i])) {
        return true;
      }
    }
    return false;
  }

  // The calls on all ways from one product to `value`; none if there is no
  // product or another one, or a call that is no sequence of nests.
  std::set<int> MembersUpTo(ValueId value) const {
    std::set<int> seen, members;
    std::vector<ValueId> wanted{value};
    int first = -1;
    while (!wanted.empty()) {
      const int call = uses_.producer(wanted.back());
      wanted.pop_back();
      if (call < 0 || CallAt(call).op == "reshape" ||
          !nests_[static_cast<size_t>(call)] || !seen.insert(call).second) {
        continue;
      }
      if (seen.size() > kMostCallsBetween) return {};
      if (!has_product_[static_cast<size_t>(call)]) {
        const std::vector<ValueId>& inputs = CallAt(call).inputs;
        wanted.insert(wanted.end(), inputs.begin(), inputs.end());
      } else if (first >= 0) {
        return {};
      } else {
        first = call;
      }
    }
    if (first < 0) return {};
    members.insert(first);
    for (const int call : seen) {  // inputs come first
      const std::vector<ValueId>& inputs = CallAt(call).inputs;
      if (std::ranges::any_of(inputs, [&](ValueId id) {
            return members.contains(uses_.producer(id));
          })) {
        members.insert(call);
      }
    }
    if (!members.contains(uses_.producer(value))) return {};
    return members;
  }

  // Whether only members and `last`, which reads `value`, read what members
  // compute, whether each makes rows of rows, and one of them sums over rows.
  bool IsChain(const std::set<int>& members, int last, ValueId value,
               size_t dims) const {
    bool sums_rows = false;
    for (const int member : members) {
      const Call& call = CallAt(member);
      if (call.outputs.size() != 1) return false;
      const ValueId made = call.outputs[0];
      if (uses_.is_output(made) || uses_.readers(made).empty()) return false;
      for (const int reader : uses_.readers(made)) {
        if (reader == last ? made != value : !members.contains(reader)) {
          return false;
        }
      }
      std::span<const Nest> nests = NestsAt(member);
      std::vector<ir::Buffer> rows;
      if (has_product_[static_cast<size_t>(member)]) {
        // From its last product on.
        const auto product =
            std::find_if(nests.rbegin(), nests.rend(), IsFloatProduct);
        rows.push_back(product->store->buffer);
        nests = {product.base(), nests.end()};
        if (rows[0]->shape.size() <= dims) return false;
      }
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        if (members.contains(uses_.producer(call.inputs[i]))) {
          rows.push_back(call.function->params[i]);
        }
      }
      if (!TakesRows(nests, std::move(rows), dims, sums_rows)) return false;
    }
    return sums_rows;
  }

  // Whether the nests make rows of the rows of `buffers` and of their own.
  static bool TakesRows(std::span<const Nest> nests,
                        std::vector<ir::Buffer> buffers, size_t dims,
                        bool& sums_rows) {
    for (const Nest& nest : nests) {
      bool reads = false;
      for (const ir::Buffer& buffer : buffers) {
        if (!ReadsRows(nest, buffer, dims)) return false;
        reads |= Reads(nest, buffer);
      }
      if (!reads) continue;
      sums_rows |= nest.block->init != nullptr;
      buffers.push_back(nest.store->buffer);
    }
    return true;
  }

  const Graph& graph_;
  const Uses uses_;
  std::vector<std::optional<std::vector<Nest>>> nests_;  // per call
  std::vector<bool> has_product_;                        // per call
};

}  // namespace

absl::StatusOr<Graph> FuseChains(Graph graph) {
  const ChainFinder finder(graph);
  std::vector<std::vector<int>> chains;
  std::vector<bool> taken(graph.calls.size());
  for (size_t i = graph.calls.size(); i-- > 0;) {
    std::vector<int> chain = finder.EndingWith(static_cast<int>(i));
    if (std::ranges::any_of(chain, [&](int call) { return taken[call]; })) {
      continue;
    }
    for (const int call : chain) taken[call] = true;
    if (!chain.empty()) chains.push_back(std::move(chain));
  }
  return MergeGroups(std::move(graph), chains);
}

}  // namespace tilefarm::graph

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

struct Chain {
  std::vector<int> calls;  // the last one first
  bool sums_rows = false;  // there is a sum or maximum over rows
};

class ChainFinder {
 public:
  explicit ChainFinder(const Graph& graph) : graph_(graph), uses_(graph) {
    for (const Call& call : graph.calls) {
      nests_.push_back(NestsOf(*call.function));
    }
  }

  // The chain that ends with the call, its members ascending; empty: none.
  std::vector<int> EndingWith(int last) const {
    const Call& call = graph_.calls[static_cast<size_t>(last)];
    if (!NestsAt(last) || call.outputs.size() != 1) return {};
    for (const Nest& nest : *NestsAt(last)) {
      if (!IsFloatProduct(nest)) continue;
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        const size_t dims = RowDims(call.inputs[i]);
        if (dims == 0 || MultipliesConstants(call, nest) ||
            !Reads(nest, call.function->params[i]) ||
            !ReadsRows(nest, call.function->params[i], dims)) {
          continue;
        }
        Chain chain{.calls = {last}};
        if (Extend(call.inputs[i], last, dims, chain) && chain.sums_rows) {
          std::ranges::sort(chain.calls);
          return std::move(chain.calls);
        }
      }
    }
    return {};
  }

 private:
  const std::optional<std::vector<Nest>>& NestsAt(int call) const {
    return nests_[static_cast<size_t>(call)];
  }

  size_t RowDims(ValueId id) const {
    return std::max<size_t>(1, graph_.values[id].type.shape.size()) - 1;
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

  // Adds the calls from a product to `value`, which has its rows in `dims`
  // dimensions and which `reader` alone may read. Returns whether there is one.
  bool Extend(ValueId value, int reader, size_t dims, Chain& chain) const {
    const int producer = uses_.producer(value);
    if (producer < 0 || uses_.OnlyReader(value) != reader ||
        RowDims(value) != dims) {
      return false;
    }
    const Call& call = graph_.calls[static_cast<size_t>(producer)];
    if (call.op == "reshape" || call.outputs.size() != 1 ||
        !NestsAt(producer)) {
      return false;
    }
    chain.calls.push_back(producer);
    const std::span<const Nest> nests = *NestsAt(producer);
    const auto product =
        std::find_if(nests.rbegin(), nests.rend(), IsFloatProduct);
    if (product != nests.rend()) {
      const ir::Buffer& made = product->store->buffer;
      return made->shape.size() > dims &&
             TakesRows({product.base(), nests.end()}, made, dims, chain);
    }
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      Chain longer = chain;
      if (TakesRows(nests, call.function->params[i], dims, longer) &&
          Extend(call.inputs[i], producer, dims, longer)) {
        chain = std::move(longer);
        return true;
      }
    }
    return false;
  }

  // Whether the nests make rows of the rows of `buffer` and of their own.
  static bool TakesRows(std::span<const Nest> nests, const ir::Buffer& buffer,
                        size_t dims, Chain& chain) {
    std::vector<ir::Buffer> buffers{buffer};
    for (const Nest& nest : nests) {
      bool reads = false;
      for (const ir::Buffer& buffer : buffers) {
        if (!ReadsRows(nest, buffer, dims)) return false;
        reads |= Reads(nest, buffer);
      }
      if (!reads) continue;
      chain.sums_rows |= nest.block->init != nullptr;
      buffers.push_back(nest.store->buffer);
    }
    return true;
  }

  const Graph& graph_;
  const Uses uses_;
  std::vector<std::optional<std::vector<Nest>>> nests_;  // per call
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

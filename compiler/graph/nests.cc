#include "compiler/graph/nests.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;

std::optional<Nest> NestOf(const ir::Stmt& stmt) {
  Nest nest{.loops = stmt};
  const ir::StmtNode* inner = stmt.get();
  while (const auto* loop = As<ir::ForNode>(inner)) inner = loop->body.get();
  nest.block = As<ir::BlockNode>(inner);
  if (nest.block == nullptr || !nest.block->allocs.empty()) return std::nullopt;
  nest.store = As<ir::StoreNode>(nest.block->body);
  if (nest.store == nullptr) return std::nullopt;
  if (nest.block->init != nullptr) {
    const auto* init = As<ir::StoreNode>(nest.block->init);
    if (init == nullptr || init->buffer != nest.store->buffer) {
      return std::nullopt;
    }
  }
  ir::PostOrderExprs(stmt, [&](const ir::Expr& expr) {
    const auto* load = As<ir::LoadNode>(expr);
    if (load == nullptr || load->buffer == nest.store->buffer) return;
    if (std::find(nest.reads.begin(), nest.reads.end(), load->buffer) ==
        nest.reads.end()) {
      nest.reads.push_back(load->buffer);
    }
  });
  return nest;
}

}  // namespace

std::optional<std::vector<Nest>> NestsOf(const ir::PrimFunc& function) {
  const ir::BlockNode* root = function.root();
  if (root == nullptr) return std::nullopt;
  std::vector<ir::Stmt> stmts{root->body};
  if (const auto* seq = As<ir::SeqNode>(root->body)) stmts = seq->stmts;
  std::vector<Nest> nests;
  std::set<const ir::BufferNode*> written;
  for (const ir::Stmt& stmt : stmts) {
    std::optional<Nest> nest = NestOf(stmt);
    if (!nest || !written.insert(nest->store->buffer.get()).second) {
      return std::nullopt;
    }
    nests.push_back(*std::move(nest));
  }
  return nests;
}

}  // namespace tilefarm::graph

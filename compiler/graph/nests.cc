#include "compiler/graph/nests.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "compiler/ir/regions.h"
#include "compiler/ir/structural.h"
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

// Outermost first.
std::vector<const ir::ForNode*> LoopsOf(const Nest& nest) {
  std::vector<const ir::ForNode*> loops;
  for (const auto* loop = As<ir::ForNode>(nest.loops); loop != nullptr;
       loop = As<ir::ForNode>(loop->body)) {
    loops.push_back(loop);
  }
  return loops;
}

bool IsZero(const ir::Expr& expr) {
  const auto* number = As<ir::FloatConstNode>(expr);
  return number != nullptr ? number->value == 0 : ir::IsConstInt(expr, 0);
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

std::optional<Factors> SummedProductOf(const Nest& nest) {
  const auto* init = As<ir::StoreNode>(nest.block->init);
  if (init == nullptr || !IsZero(init->value)) return std::nullopt;
  const auto* sum = As<ir::BinaryNode>(nest.store->value);
  if (sum == nullptr || sum->op != ir::BinaryOp::kAdd) return std::nullopt;
  const auto* old = As<ir::LoadNode>(sum->a);
  const auto* product = As<ir::BinaryNode>(sum->b);
  if (old == nullptr || old->buffer != nest.store->buffer ||
      !std::equal(old->indices.begin(), old->indices.end(),
                  nest.store->indices.begin(), nest.store->indices.end(),
                  [](const ir::Expr& a, const ir::Expr& b) {
                    return ir::StructuralEqual(a, b);
                  }) ||
      product == nullptr || product->op != ir::BinaryOp::kMul ||
      ir::Loads(sum->b, nest.store->buffer.get())) {
    return std::nullopt;
  }
  return Factors{product->a, product->b};
}

bool HasPlainLoops(const Nest& nest) {
  const std::vector<ir::IterVar>& iters = nest.block->iters;
  const std::vector<const ir::ForNode*> loops = LoopsOf(nest);
  const auto is_plain = [&](const ir::ForNode* loop) {
    return loop->for_kind == ir::ForKind::kSerial &&
           loop->annotations.empty() && ir::IsConstInt(loop->min, 0) &&
           std::count_if(iters.begin(), iters.end(), [&](const auto& iter) {
             return iter.binding == loop->var &&
                    ir::StructuralEqual(iter.dom.extent, loop->extent);
           }) == 1;
  };
  return iters.size() == loops.size() &&
         ir::IsConstInt(nest.block->predicate, 1) &&
         std::all_of(loops.begin(), loops.end(), is_plain);
}

ir::Stmt WithBlock(const Nest& nest, ir::BlockNode block) {
  const std::vector<const ir::ForNode*> loops = LoopsOf(nest);
  ir::Stmt stmt = ir::BlockWithAccesses(std::move(block));
  for (size_t i = loops.size(); i-- > 0;) {
    auto copy = std::make_shared<ir::ForNode>(*loops[i]);
    copy->body = std::move(stmt);
    stmt = std::move(copy);
  }
  return stmt;
}

ir::PrimFuncPtr FunctionOf(const std::string& name,
                           std::vector<ir::Buffer> params,
                           std::vector<ir::Buffer> allocs,
                           std::vector<ir::Stmt> nests) {
  ir::BlockNode root;
  root.name = "root";
  root.predicate = ir::BoolConst(true);
  root.allocs = std::move(allocs);
  root.body = ir::MakeSeq(std::move(nests));
  auto function = std::make_shared<ir::PrimFunc>();
  function->name = name;
  function->attrs["global_symbol"] = ir::Attr(name);
  function->attrs["tir.noalias"] = ir::Attr(true);
  function->params = std::move(params);
  function->body = ir::BlockOf(std::move(root));
  return function;
}

}  // namespace tilefarm::graph

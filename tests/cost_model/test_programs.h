// Loop nests built by hand for the cost model's tests.
#ifndef TILEFARM_TESTS_COST_MODEL_TEST_PROGRAMS_H_
#define TILEFARM_TESTS_COST_MODEL_TEST_PROGRAMS_H_

#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::cost_model {

inline ir::DataType F32() { return ir::DataType::Float(32); }

// One loop of a nest, outermost first.
struct LoopSpec {
  int64_t extent;
  ir::ForKind kind = ir::ForKind::kSerial;
};

// Tiles of a matmul C[m, n] += A[m, k] * B[k, n], with loops in the order m0 n0
// k0 m1 k1 n1; the shape is the product of the tiles.
struct MatmulTiles {
  int64_t m0 = 8, m1 = 8, n0 = 4, n1 = 16, k0 = 8, k1 = 8;
  ir::ForKind outer = ir::ForKind::kSerial;
  ir::ForKind inner = ir::ForKind::kVectorized;
  ir::ForKind reduce = ir::ForKind::kSerial;  // of k1
};

inline ir::IterVar MakeIter(const ir::Var& var, int64_t extent,
                            ir::IterType type, ir::Expr binding) {
  return {
      var, {ir::IntConst(0), ir::IntConst(extent)}, type, std::move(binding)};
}

inline ir::PrimFunc WithRoot(std::vector<ir::Buffer> params, ir::Stmt body) {
  ir::BlockNode root;
  root.name = "root";
  root.predicate = ir::BoolConst(true);
  root.body = std::move(body);
  ir::PrimFunc function;
  function.name = "main";
  function.params = std::move(params);
  function.body = ir::BlockOf(std::move(root));
  return function;
}

inline ir::PrimFunc TiledMatmul(const MatmulTiles& t) {
  using namespace ir;
  const int64_t m = t.m0 * t.m1, n = t.n0 * t.n1, k = t.k0 * t.k1;
  Buffer a = MakeBuffer("A", F32(), {m, k});
  Buffer b = MakeBuffer("B", F32(), {k, n});
  Buffer c = MakeBuffer("C", F32(), {m, n});
  Var m0 = MakeVar("m0"), n0 = MakeVar("n0"), k0 = MakeVar("k0");
  Var m1 = MakeVar("m1"), k1 = MakeVar("k1"), n1 = MakeVar("n1");
  Var vm = MakeVar("vm"), vn = MakeVar("vn"), vk = MakeVar("vk");
  BlockNode block;
  block.name = "C";
  block.predicate = BoolConst(true);
  block.iters = {
      MakeIter(vm, m, IterType::kSpatial, Expr(m0) * t.m1 + Expr(m1)),
      MakeIter(vn, n, IterType::kSpatial, Expr(n0) * t.n1 + Expr(n1)),
      MakeIter(vk, k, IterType::kReduce, Expr(k0) * t.k1 + Expr(k1))};
  block.init = MakeStore(c, {vm, vn}, FloatConst(0, F32()));
  block.body = MakeStore(
      c, {vm, vn}, Load(c, {vm, vn}) + Load(a, {vm, vk}) * Load(b, {vk, vn}));
  Stmt body = BlockOf(std::move(block));
  body = MakeFor(n1, IntConst(t.n1), body, t.inner);
  body = MakeFor(k1, IntConst(t.k1), body, t.reduce);
  body = MakeFor(m1, IntConst(t.m1), body);
  body = MakeFor(k0, IntConst(t.k0), body);
  body = MakeFor(n0, IntConst(t.n0), body);
  body = MakeFor(m0, IntConst(t.m0), body, t.outer);
  return WithRoot({a, b, c}, body);
}

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_TESTS_COST_MODEL_TEST_PROGRAMS_H_

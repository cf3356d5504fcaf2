#include "compiler/arith/tuple_reducer.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::arith {
namespace {

// The body of a block with these lines over v, k < `extent`, which updates I
// and M.
ir::Stmt Body(const std::string& lines, const std::string& extent = "100") {
  const auto function = ir::ParseFunction(
      absl::StrCat("@T.prim_func\n"
                   "def main(A: T.Buffer((8, ",
                   extent,
                   "), \"float32\"), I: T.Buffer((8,), \"int32\"), "
                   "M: T.Buffer((8,), \"float32\")):\n"
                   "    for i, j in T.grid(8, ",
                   extent,
                   "):\n"
                   "        with T.block(\"M\"):\n"
                   "            v, k = T.axis.remap(\"SR\", [i, j])\n",
                   lines),
      "test");
  EXPECT_TRUE(function.ok()) << function.status();
  ir::Stmt body;
  ir::PreOrder((*function)->body, [&](const ir::Stmt& s) {
    const auto* block = ir::As<ir::BlockNode>(s);
    if (block != nullptr && block->name == "M") body = block->body;
    return true;
  });
  return body;
}

std::string Choice(const std::string& keeps, const std::string& larger) {
  return absl::StrCat("            x = T.Select(", keeps,
                      ", I[v], T.Cast(\"int32\", k))\n"
                      "            y = T.Select(",
                      larger,
                      ", M[v], A[v, k])\n"
                      "            I[v] = x\n"
                      "            M[v] = y\n");
}

std::optional<TupleReducer> Match(const ir::Stmt& body, int64_t extent = 100) {
  IndexMath math;
  ir::PostOrderExprs(body, [&](const ir::Expr& e) {
    const auto* var = ir::As<ir::VarNode>(e);
    if (var != nullptr && var->name == "k") math.Bind(var, 0, extent - 1);
  });
  return MatchTupleReducer(body, math);
}

double IdentityAt(const TupleReducer& reducer, size_t k) {
  const ir::Expr& e = reducer.identities[k];
  if (const auto* value = ir::As<ir::FloatConstNode>(e)) return value->value;
  return static_cast<double>(*ir::AsInt(e));
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(TupleReducerTest, FindsExtremesWithTheirIndices) {
  struct Case {
    const char* keeps;
    const char* larger;
    double index, value;  // identities
  };
  for (const Case& c : std::vector<Case>{
           {"M[v] > A[v, k] or M[v] == A[v, k] and I[v] < k", "M[v] > A[v, k]",
            0x7fffffff, -kInfinity},
           {"M[v] > A[v, k] or M[v] == A[v, k] and I[v] > k", "M[v] >= A[v, k]",
            -0x80000000LL, -kInfinity},
           {"A[v, k] > M[v] or A[v, k] == M[v] and I[v] < k", "A[v, k] > M[v]",
            0x7fffffff, kInfinity},
           {"not (M[v] > A[v, k] or M[v] == A[v, k] and I[v] >= k)",
            "M[v] < A[v, k]", 0x7fffffff, kInfinity}}) {
    SCOPED_TRACE(c.keeps);
    const ir::Stmt body = Body(Choice(c.keeps, c.larger));
    const auto reducer = Match(body);
    ASSERT_TRUE(reducer.has_value());
    ASSERT_EQ(reducer->stores.size(), 2u);
    EXPECT_EQ(reducer->stores[0]->buffer->name, "I");
    EXPECT_EQ(IdentityAt(*reducer, 0), c.index);
    EXPECT_EQ(IdentityAt(*reducer, 1), c.value);
    EXPECT_FALSE(reducer->ops[0].has_value());
    EXPECT_EQ(ir::ToString(reducer->terms[1]), "A[v, k]");
  }
}

TEST(TupleReducerTest, RefusesChoicesThatDependOnTheOrder) {
  for (const auto& [keeps, larger] :
       std::vector<std::pair<std::string, std::string>>{
           {"M[v] > A[v, k]", "M[v] > A[v, k]"},
           {"M[v] >= A[v, k]", "M[v] >= A[v, k]"},
           // The index of another element than the one that is kept.
           {"M[v] < A[v, k] or M[v] == A[v, k] and I[v] < k", "M[v] > A[v, k]"},
           {"I[v] < k", "M[v] > A[v, k] and I[v] < k"},
           // Of values that are not compared with each other.
           {"M[v] > T.float32(0)", "M[v] > A[v, k]"}}) {
    SCOPED_TRACE(keeps);
    EXPECT_FALSE(Match(Body(Choice(keeps, larger))).has_value());
  }
}

// An index that int32 may not hold is not what is stored.
TEST(TupleReducerTest, RefusesTermsThatDoNotFit) {
  const std::string keeps = "M[v] > A[v, k] or M[v] == A[v, k] and I[v] < k";
  const ir::Stmt body = Body(Choice(keeps, "M[v] > A[v, k]"));
  EXPECT_TRUE(Match(body, int64_t{1} << 31).has_value());
  EXPECT_FALSE(Match(body, (int64_t{1} << 31) + 1).has_value());
}

TEST(TupleReducerTest, FindsOperationsOfEachForItself) {
  const ir::Stmt body = Body(
      "            I[v] = I[v] + T.Cast(\"int32\", k)\n"
      "            M[v] = T.max(A[v, k], M[v])\n");
  const auto reducer = Match(body);
  ASSERT_TRUE(reducer.has_value());
  EXPECT_EQ(reducer->ops[0], ir::BinaryOp::kAdd);
  EXPECT_EQ(reducer->ops[1], ir::BinaryOp::kMax);
  EXPECT_EQ(IdentityAt(*reducer, 0), 0);
  EXPECT_EQ(IdentityAt(*reducer, 1), -kInfinity);
}

TEST(TupleReducerTest, RefusesValuesThatReadOtherResults) {
  // Of this instance,
  EXPECT_FALSE(
      Match(Body("            M[v] = M[v] + A[v, k]\n"
                 "            I[v] = I[v] + T.Cast(\"int32\", M[v])\n"))
          .has_value());
  // or of those before it.
  EXPECT_FALSE(Match(Body("            x = I[v] + T.Cast(\"int32\", M[v])\n"
                          "            y = M[v] + A[v, k]\n"
                          "            I[v] = x\n"
                          "            M[v] = y\n"))
                   .has_value());
  // Not an update of its own element.
  EXPECT_FALSE(Match(Body("            M[v] = M[7 - v] + A[v, k]\n"
                          "            I[v] = I[v] + 1\n"))
                   .has_value());
}

}  // namespace
}  // namespace tilefarm::arith

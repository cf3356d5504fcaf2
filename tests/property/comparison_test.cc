// Tests the comparisons of differential.h: each kind of wrong output is
// reported.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/parser.h"
#include "compiler/schedule/schedule.h"
#include "tests/property/differential.h"

namespace tilefarm::property {
namespace {

// A sum of products, an integer and a bool for each row; values that are not
// finite where A is 3.
constexpr char kCompared[] = R"(
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32"), D: T.Buffer((4,), "int32"), E: T.Buffer((4,), "bool"), F: T.Buffer((4, 8), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk] * T.exp(A[vi, vk])
    for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = T.Cast("int32", vi) + 5
            E[vi] = A[vi, 0] > T.float32(0)
    for i, k in T.grid(4, 8):
        with T.block("F"):
            vi, vk = T.axis.remap("SS", [i, k])
            F[vi, vk] = T.log(T.float32(2) - A[vi, vk])
)";

class Comparison : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto program = ir::ParseFunction(kCompared);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *program;
    const std::vector<Bytes> inputs = SmallInputs(*program_, 7);
    want_.interpreted = inputs;
    ASSERT_TRUE(Interpret(*program_, want_.interpreted).ok());
    const auto oracle = testing::HostOracle::Compile(program_);
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    auto run = oracle->Run(inputs);
    ASSERT_TRUE(run.ok()) << run.status();
    want_.oracle = *std::move(run);
    got_ = want_.interpreted;
  }

  template <typename T>
  T At(int param, int element) const {
    T value;
    std::memcpy(&value, &got_[param][element * sizeof(T)], sizeof(T));
    return value;
  }
  template <typename T>
  void Set(int param, int element, T value) {
    std::memcpy(&got_[param][element * sizeof(T)], &value, sizeof(T));
  }
  std::string Compare(bool exact = false) const {
    Expected want = want_;
    want.exact = exact;
    return DifferenceFromExpected(*program_, want, got_);
  }
  // The index of an element of F that is finite, or of one that is not.
  int ElementOfF(bool finite) const {
    for (int i = 0; i < 32; ++i) {
      if (std::isfinite(At<float>(4, i)) == finite) return i;
    }
    ADD_FAILURE() << "F has no such element";
    return 0;
  }

  ir::PrimFuncPtr program_;
  Expected want_;
  std::vector<Bytes> got_;
};

TEST_F(Comparison, AgreesWithWhatIsRight) {
  EXPECT_EQ(Compare(), "");
  EXPECT_EQ(Compare(/*exact=*/true), "");
}

TEST_F(Comparison, LetsRoundingPass) {
  Set(1, 2, std::nextafter(At<float>(1, 2), 1e30f));
  EXPECT_EQ(Compare(), "");
}

TEST_F(Comparison, ReportsRoundingWhereNothingRounds) {
  Set(1, 2, std::nextafter(At<float>(1, 2), 1e30f));
  EXPECT_NE(Compare(/*exact=*/true), "");
}

TEST_F(Comparison, ReportsAWrongElement) {
  Set(1, 3, At<float>(1, 3) * 1.001f);
  EXPECT_NE(Compare(), "");
}

// The comparison with the interpreter uses a fixed relative tolerance; the
// oracle's bound of an element is smaller.
TEST_F(Comparison, ReportsWhatOnlyTheBoundsShow) {
  const double bound = want_.oracle.bounds[1][3];
  ASSERT_LT(bound, 5e-5 * std::abs(At<float>(1, 3)));
  Set(1, 3, At<float>(1, 3) + static_cast<float>(4 * bound));
  EXPECT_EQ(Difference(*program_, want_.interpreted, got_, false), "");
  EXPECT_NE(Compare().find("oracle"), std::string::npos) << Compare();
}

// Numbers of 1e27 that cancel leave 1e20, which the oracle knows.
TEST_F(Comparison, LetsTheRoundingOfWhatCancelsPass) {
  for (double& bound : want_.oracle.bounds[1]) bound = 1e21;
  Set(1, 3, At<float>(1, 3) + 1e20f);
  EXPECT_EQ(Compare(), "");
  EXPECT_NE(Compare(/*exact=*/true), "");
  Set(1, 3, At<float>(1, 3) + 1e22f);
  EXPECT_NE(Compare(), "");
}

TEST_F(Comparison, ReportsAnIntegerThatIsOffByOne) {
  Set(2, 1, At<int32_t>(2, 1) + 1);
  EXPECT_NE(Compare(), "");
}

TEST_F(Comparison, ReportsABoolThatIsTheOther) {
  Set(3, 0, static_cast<uint8_t>(1 - At<uint8_t>(3, 0)));
  EXPECT_NE(Compare(), "");
}

TEST_F(Comparison, ReportsNotANumber) {
  Set(4, ElementOfF(true), std::numeric_limits<float>::quiet_NaN());
  EXPECT_NE(Compare(), "");
}

TEST_F(Comparison, ReportsAnInfinity) {
  Set(1, 0, std::numeric_limits<float>::infinity());
  EXPECT_NE(Compare(), "");
}

TEST_F(Comparison, ReportsANumberWhereThereIsNone) {
  Set(4, ElementOfF(false), 1.0f);
  EXPECT_NE(Compare(), "");
}

TEST_F(Comparison, ReportsWhatIsNotTheSameInfinity) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Set(1, 0, kInfinity);
  const std::vector<Bytes> want = got_;
  for (const bool exact : {false, true}) {
    Set(1, 0, kInfinity);
    EXPECT_EQ(Difference(*program_, want, got_, exact), "");
    for (const float other : {-kInfinity, 1.0f}) {
      Set(1, 0, other);
      EXPECT_NE(Difference(*program_, want, got_, exact), "") << other;
    }
  }
}

TEST_F(Comparison, ReportsAnInputThatWasChanged) {
  Set(0, 5, At<float>(0, 5) + 1);
  EXPECT_NE(Compare(), "");
}

}  // namespace
}  // namespace tilefarm::property

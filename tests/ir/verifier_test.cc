#include "compiler/ir/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/machine_op.h"
#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

using ::testing::HasSubstr;

PrimFunc Function(std::vector<Buffer> params, Stmt body,
                  std::vector<Buffer> allocs = {}) {
  BlockNode root;
  root.name = "root";
  root.predicate = BoolConst(true);
  root.allocs = std::move(allocs);
  root.body = std::move(body);
  return {"f", std::move(params), {}, BlockOf(std::move(root))};
}

void ExpectInvalid(const PrimFunc& function, const std::string& message,
                   const Limits& limits = {}) {
  const absl::Status status = Verify(function, limits);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

class VerifierTest : public ::testing::Test {
 protected:
  Buffer a_ = MakeBuffer("A", kF32, {8});
  Buffer b_ = MakeBuffer("B", kF32, {8});
  Var i_ = MakeVar("i");
  Expr zero_ = FloatConst(0, kF32);
};

TEST_F(VerifierTest, AcceptsALoop) {
  EXPECT_TRUE(Verify(Function({a_}, MakeFor(i_, IntConst(8),
                                            MakeStore(a_, {i_}, zero_))))
                  .ok());
}

TEST_F(VerifierTest, VariableOutOfScope) {
  ExpectInvalid(Function({a_}, MakeStore(a_, {i_}, zero_)),
                "variable 'i' is used out of its scope");
  const Stmt loop = MakeFor(i_, IntConst(8), MakeStore(a_, {i_}, zero_));
  ExpectInvalid(Function({a_}, MakeSeq({loop, MakeStore(a_, {i_}, zero_)})),
                "out of its scope");
}

TEST_F(VerifierTest, VariableBoundTwice) {
  const Stmt inner = MakeFor(i_, IntConst(8), MakeStore(a_, {i_}, zero_));
  ExpectInvalid(Function({a_}, MakeFor(i_, IntConst(8), inner)),
                "variable 'i' is bound twice");
}

TEST_F(VerifierTest, UndeclaredBuffer) {
  ExpectInvalid(Function({a_}, MakeStore(b_, {IntConst(0)}, zero_)),
                "the buffer 'B' is not declared here");
}

TEST_F(VerifierTest, ParameterTwice) {
  ExpectInvalid(Function({a_, a_}, MakeStore(a_, {IntConst(0)}, zero_)),
                "the buffer 'A' is a parameter twice");
}

TEST_F(VerifierTest, WrongRank) {
  ExpectInvalid(
      Function({a_}, MakeStore(a_, {IntConst(0), IntConst(0)}, zero_)),
      "'A' of 1 dimensions is accessed with 2 indices");
}

TEST_F(VerifierTest, IndexOfWrongDtype) {
  ExpectInvalid(Function({a_}, MakeStore(a_, {zero_}, zero_)),
                "an index of 'A' has dtype float32");
}

TEST_F(VerifierTest, InitWithoutReduction) {
  BlockNode block;
  block.name = "C";
  block.predicate = BoolConst(true);
  const Var v = MakeVar("v");
  block.iters = {{v, {IntConst(0), IntConst(8)}, IterType::kSpatial, i_}};
  block.init = MakeStore(a_, {v}, zero_);
  block.body = MakeStore(a_, {v}, zero_);
  ExpectInvalid(Function({a_}, MakeFor(i_, IntConst(8), BlockOf(block))),
                "block \"C\" has T.init but no T.axis.reduce");
}

TEST_F(VerifierTest, LoopVariableInsideABlockWithAxes) {
  BlockNode block;
  block.name = "C";
  block.predicate = BoolConst(true);
  const Var v = MakeVar("v");
  block.iters = {{v, {IntConst(0), IntConst(8)}, IterType::kSpatial, i_}};
  block.body = MakeStore(a_, {i_}, zero_);
  ExpectInvalid(Function({a_}, MakeFor(i_, IntConst(8), BlockOf(block))),
                "block \"C\": loop variable 'i' is used inside of the block");
}

TEST_F(VerifierTest, OperationOfLoweredPrograms) {
  const Expr lanes = Load(a_, {MakeRamp(IntConst(0), IntConst(1), 8)});
  const auto stored = [&](Expr value) {
    return Function({a_, b_}, MakeStore(b_, {IntConst(0)}, std::move(value)));
  };
  const PrimFunc lowered = stored(MakeMachineOp(MachineOp::kLaneSum, {lanes}));
  ExpectInvalid(lowered, "T.lane_sum is not part of the language");
  EXPECT_TRUE(VerifyScopes(lowered).ok()) << VerifyScopes(lowered);
  const PrimFunc wrong = stored(std::make_shared<const MachineOpNode>(
      MachineOp::kLaneSum, std::vector<Expr>{lanes, lanes}, kF32));
  EXPECT_THAT(std::string(VerifyScopes(wrong).message()),
              HasSubstr("T.lane_sum has 2 arguments"));
}

TEST_F(VerifierTest, Limits) {
  Limits limits;
  limits.max_buffer_bytes = 16;
  ExpectInvalid(Function({a_}, MakeStore(a_, {IntConst(0)}, zero_)),
                "the buffer 'A' is too large", limits);
  limits = {};
  limits.max_total_bytes = 40;
  ExpectInvalid(Function({a_, b_}, MakeStore(a_, {IntConst(0)}, zero_)),
                "the buffers need 64 bytes; the limit is 40", limits);
  limits = {};
  limits.max_loops = 0;
  ExpectInvalid(
      Function({a_}, MakeFor(i_, IntConst(8), MakeStore(a_, {i_}, zero_))),
      "more than 0 loops", limits);
  limits = {};
  limits.max_nodes = 3;
  ExpectInvalid(
      Function({a_}, MakeFor(i_, IntConst(8), MakeStore(a_, {i_}, zero_))),
      "more than 3 nodes", limits);
}

TEST_F(VerifierTest, HugeShapesDoNotOverflow) {
  const Buffer huge = MakeBuffer(
      "H", kF32, {int64_t{1} << 40, int64_t{1} << 40, int64_t{1} << 40});
  ExpectInvalid(Function({a_}, MakeStore(a_, {IntConst(0)}, zero_), {huge}),
                "the buffer 'H' is too large");
}

TEST_F(VerifierTest, ModuleWithTwoFunctionsOfOneName) {
  const PrimFuncPtr f = ParseOrDie(WithBuffers("C[0] = 1"));
  EXPECT_EQ(Verify(IRModule{{f, f}}).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tilefarm::ir

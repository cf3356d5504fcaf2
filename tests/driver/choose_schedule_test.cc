#include "compiler/driver/choose_schedule.h"

#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm::driver {
namespace {

constexpr char kProgram[] = R"(
@I.ir_module
class Module:
    @T.prim_func
    def twice(Input: T.Buffer((64,), "float32"), Output: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("Output"):
                vi = T.axis.spatial(64, i)
                Output[vi] = Input[vi] * T.float32(2)
)";

class ChooseSchedule : public testing::Test {
 protected:
  ChooseSchedule()
      : module_(*ir::ParseModule(kProgram)),
        target_(*target::Parse("x86-64:znver4,cores=1")) {}

  // A record for the canonical program that vectorizes its only loop.
  database::BestMatch Best() const {
    database::BestMatch best;
    best.record.candidate_id = "c1";
    best.record.median_seconds = 1e-6;
    best.record.program = ir::Print(*ir::Canonicalize(*module_.functions[0]));
    // The canonical form names the block.
    const auto canonical = ir::Canonicalize(*module_.functions[0]);
    const auto* loop = ir::As<ir::ForNode>(canonical->root()->body);
    const auto* block =
        loop == nullptr ? nullptr : ir::As<ir::BlockNode>(loop->body);
    if (block != nullptr) {
      best.record.trace = "b0 = sch.get_block(\"" + block->name +
                          "\")\nl1, = sch.get_loops(b0)\nsch.vectorize(l1)\n";
    }
    best.reason = "exact device model";
    return best;
  }
  absl::StatusOr<ScheduledModule> Choose(const FindBest& find) const {
    return ScheduleFromRecords(module_, target_, "llvm-test", {}, find);
  }

  ir::IRModule module_;
  target::Target target_;
};

TEST_F(ChooseSchedule, ReplaysTheRecordUnderTheUsersNames) {
  const auto chosen = Choose([&](const database::BestQuery& query)
                                 -> absl::StatusOr<database::BestMatch> {
    EXPECT_EQ(query.fingerprint, "llvm-test");
    EXPECT_EQ(query.target.Key(), target_.Key());
    return Best();
  });
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  const ir::PrimFunc& function = *chosen->module.functions[0];
  EXPECT_EQ(function.name, "twice");
  EXPECT_EQ(function.params[0]->name, "Input");
  EXPECT_THAT(ir::Print(function), testing::HasSubstr("T.vectorized(64)"));
  ASSERT_EQ(chosen->choices.size(), 1);
  EXPECT_EQ(chosen->choices[0].schedule, "record");
  EXPECT_EQ(chosen->choices[0].candidate_id, "c1");
}

TEST_F(ChooseSchedule, TheLookupNamesTheDeviceWhereTheTargetWasHost) {
  target_ = *target::Parse("host,cores=1");
  std::string asked;
  const FindBest find = [&](const database::BestQuery& query)
      -> absl::StatusOr<database::BestMatch> {
    asked = query.device_model;
    return Best();
  };
  ASSERT_TRUE(Choose(find).ok());
  EXPECT_THAT(asked, testing::HasSubstr(";cpu=" + target_.cpu + ";"));
  // The same machine, identified by its key only, is any of its kind.
  target_ = *target::Parse(target_.Key());
  ASSERT_TRUE(Choose(find).ok());
  EXPECT_EQ(asked, "");
}

TEST_F(ChooseSchedule, FallsBackToTheDefaultAndSaysWhy) {
  const auto chosen = Choose([](const database::BestQuery&) {
    return absl::StatusOr<database::BestMatch>(
        absl::NotFoundError("no record of this workload"));
  });
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->choices[0].schedule, "default");
  EXPECT_EQ(chosen->choices[0].reason, "no record of this workload");
}

TEST_F(ChooseSchedule, AFailingLookupIsNoFallback) {
  const auto chosen = Choose([](const database::BestQuery&) {
    return absl::StatusOr<database::BestMatch>(
        absl::UnavailableError("no answer"));
  });
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ChooseSchedule, ARecordThatDoesNotReplayIsAnError) {
  const auto chosen = Choose(
      [&](const database::BestQuery&) -> absl::StatusOr<database::BestMatch> {
        database::BestMatch best = Best();
        best.record.trace = "b0 = sch.get_block(\"nowhere\")\n";
        return best;
      });
  EXPECT_FALSE(chosen.ok());
  EXPECT_THAT(std::string(chosen.status().message()),
              testing::HasSubstr("does not replay"));
}

}  // namespace
}  // namespace tilefarm::driver

#include "cost_model/skeleton/evaluator.h"

#include <gtest/gtest.h>

#include "cost_model/features.h"
#include "tests/space/space_test_programs.h"
#include "tests/support/candidate_text.h"

namespace tilefarm::skeleton {
namespace {

std::shared_ptr<const space::DesignSpace> SpaceOf(
    const ir::PrimFuncPtr& program) {
  auto space = space::DesignSpace::Create(program, space::TestTarget());
  EXPECT_TRUE(space.ok()) << space.status();
  return *std::move(space);
}

cost_model::FeatureRows Replayed(const space::DesignSpace& space,
                                 const space::Candidate& candidate) {
  auto schedule = space.Apply(candidate);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return cost_model::ExtractFeatures(
      *schedule->module().Find(space.program()->name), space::TestTarget());
}

TEST(CandidateEvaluatorTest, NearlyAllTilingsAreSeenWithoutAProgram) {
  const auto space = SpaceOf(space::MatmulRelu(64, 64, 64));
  CandidateEvaluator evaluator(space, space::TestTarget());
  Rng rng(3);
  for (int i = 0; i < 400; ++i) {
    auto candidate = space->Sample(rng);
    ASSERT_TRUE(candidate.ok());
    EXPECT_TRUE(evaluator.Evaluate(*candidate).has_value());
  }
  const EvaluatorStats& stats = evaluator.stats();
  EXPECT_EQ(stats.by_skeleton + stats.by_replay, 400);
  EXPECT_GT(stats.by_skeleton, 300);
  EXPECT_EQ(stats.by_replay, stats.checks);
  EXPECT_EQ(stats.mismatches, 0);
  EXPECT_EQ(stats.skeletons, static_cast<int64_t>(space->sketches().size()));
}

TEST(CandidateEvaluatorTest, ADecisionThatDoesNotFitIsIllegal) {
  const auto space = SpaceOf(space::MatmulRelu(64, 64, 64));
  CandidateEvaluator evaluator(space, space::TestTarget());
  Rng rng(3);
  for (int i = 0; i < 50; ++i) {
    auto candidate = space->Sample(rng);
    ASSERT_TRUE(candidate.ok());
    ASSERT_TRUE(evaluator.Evaluate(*candidate).has_value());
    // A wrong product, an inner factor that is too large, too few factors.
    for (const ir::AttrList& tile :
         {ir::AttrList{ir::Attr(3), ir::Attr(1), ir::Attr(1), ir::Attr(8)},
          ir::AttrList{ir::Attr(-8), ir::Attr(-1), ir::Attr(1), ir::Attr(8)},
          ir::AttrList{ir::Attr(8), ir::Attr(8)}}) {
      candidate->decisions[0] = ir::Attr(tile);
      EXPECT_FALSE(space->Apply(*candidate).ok());
      EXPECT_FALSE(evaluator.Evaluate(*candidate).has_value());
    }
  }
}

TEST(CandidateEvaluatorTest, SeveralThreadsReplayWhatOneDoes) {
  const auto target = target::Parse("sim:sm_80");
  ASSERT_TRUE(target.ok()) << target.status();
  auto made =
      space::DesignSpace::Create(space::MatmulRelu(64, 64, 64), *target);
  ASSERT_TRUE(made.ok()) << made.status();
  const std::shared_ptr<const space::DesignSpace> space = *std::move(made);
  CandidateEvaluator evaluator(space, *target, /*threads=*/4);
  ASSERT_TRUE(evaluator.replays_all());
  Rng rng(3);
  std::vector<space::Candidate> candidates;
  for (int i = 0; i < 24; ++i) {
    auto candidate = space->Sample(rng);
    ASSERT_TRUE(candidate.ok());
    candidates.push_back(*std::move(candidate));
  }
  candidates[5].decisions[0] = ir::Attr(ir::AttrList{ir::Attr(8)});
  const auto rows = evaluator.EvaluateAll(candidates);
  ASSERT_EQ(rows.size(), candidates.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    CandidateEvaluator alone(space, *target);
    const auto expected = alone.Evaluate(candidates[i]);
    ASSERT_EQ(rows[i].has_value(), expected.has_value()) << i;
    EXPECT_EQ(expected.has_value(), i != 5);
    if (!expected) continue;
    EXPECT_EQ(rows[i]->values, expected->values) << i;
  }
  EXPECT_EQ(evaluator.stats().by_replay, 24);
}

// 100 columns are split into vectors of 64. The second split reaches into the
// next hundred, so only the hundreds run in parallel.
TEST(CandidateEvaluatorTest, ATailAmongParallelLoopsIsReplayed) {
  const target::Target target = space::TestTarget(/*cores=*/4);
  auto made = space::DesignSpace::Create(space::Dense(1, 200, 384), target);
  ASSERT_TRUE(made.ok()) << made.status();
  const std::shared_ptr<const space::DesignSpace> space = *std::move(made);
  CandidateEvaluator evaluator(space, target);
  Rng rng(3);
  int seen = 0;
  for (int i = 0; i < 200; ++i) {
    auto candidate = space->Sample(rng);
    ASSERT_TRUE(candidate.ok());
    const auto tiling = [](int64_t a, int64_t b, int64_t c, int64_t d) {
      return ir::Attr(
          ir::AttrList{ir::Attr(a), ir::Attr(b), ir::Attr(c), ir::Attr(d)});
    };
    if (candidate->decisions.size() < 2 ||
        candidate->decisions[1].AsList() == nullptr ||
        candidate->decisions[1].AsList()->size() != 4) {
      continue;
    }
    candidate->decisions[0] = tiling(1, 1, 1, 1);
    candidate->decisions[1] = tiling(2, 100, 1, 1);
    const auto schedule = space->Apply(*candidate);
    const auto rows = evaluator.Evaluate(*candidate);
    ASSERT_EQ(schedule.ok(), rows.has_value()) << schedule.status();
    ASSERT_EQ(evaluator.stats().mismatches, 0)
        << space::CandidateText(*candidate);
    ++seen;
  }
  EXPECT_GT(seen, 10);
  EXPECT_GT(evaluator.stats().reasons.count("a tail among parallel loops"), 0u);
}

TEST(CandidateEvaluatorTest, ASketchByHandIsReplayed) {
  const ir::PrimFuncPtr program = space::Matmul(64, 64, 64);
  auto trace = schedule::Trace::Parse(R"(
b0 = sch.get_block("C", func_name="main")
l1, l2, l3 = sch.get_loops(b0)
v4, v5 = sch.sample_perfect_tile(l1, n=2, max_innermost_factor=64)
l6, l7 = sch.split(l1, factors=[v4, v5])
)");
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto made = space::DesignSpace::FromTrace(program, space::TestTarget(),
                                            *std::move(trace));
  ASSERT_TRUE(made.ok()) << made.status();
  const std::shared_ptr<const space::DesignSpace> space = *std::move(made);
  CandidateEvaluator evaluator(space, space::TestTarget());
  Rng rng(3);
  for (int i = 0; i < 5; ++i) {
    auto candidate = space->Sample(rng);
    ASSERT_TRUE(candidate.ok());
    auto rows = evaluator.Evaluate(*candidate);
    ASSERT_TRUE(rows.has_value());
    EXPECT_EQ(rows->values, Replayed(*space, *candidate).values);
  }
  EXPECT_EQ(evaluator.stats().by_skeleton, 0);
  EXPECT_EQ(evaluator.stats().by_replay, 5);
  EXPECT_EQ(evaluator.stats().reasons.size(), 1u);
}

TEST(CandidateEvaluatorTest, ASkeletonThatWasWrongIsNotUsedAgain) {
  const auto space = SpaceOf(space::Matmul(64, 64, 64));
  CandidateEvaluator evaluator(space, space::TestTarget());
  Rng rng(3);
  auto candidate = space->Sample(rng);
  ASSERT_TRUE(candidate.ok());
  auto rows = evaluator.Evaluate(*candidate);
  ASSERT_TRUE(rows.has_value());
  auto schedule = space->Apply(*candidate);
  ASSERT_TRUE(schedule.ok());
  const ir::PrimFuncPtr scheduled = schedule->module().Find("main");
  EXPECT_TRUE(evaluator.Check(*candidate, *scheduled, *rows));

  const cost_model::FeatureRows right = *rows;
  rows->values[0] += 1;
  EXPECT_FALSE(evaluator.Check(*candidate, *scheduled, *rows));
  EXPECT_EQ(rows->values, right.values);
  EXPECT_EQ(evaluator.stats().mismatches, 1);
  const int64_t before = evaluator.stats().by_skeleton;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(evaluator.Evaluate(*candidate)->values, right.values);
  }
  EXPECT_EQ(evaluator.stats().by_skeleton, before);
}

}  // namespace
}  // namespace tilefarm::skeleton

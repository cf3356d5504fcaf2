#include "compiler/space/design_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "tests/space/space_test_programs.h"
#include "tests/space/special_values.h"
#include "tests/support/candidate_text.h"

namespace tilefarm::space {
namespace {

std::unique_ptr<DesignSpace> Space(const ir::PrimFuncPtr& program,
                                   int cores = 1) {
  auto space = DesignSpace::Create(program, TestTarget(cores));
  EXPECT_TRUE(space.ok()) << space.status();
  return *std::move(space);
}

class EveryProgramTest : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  ir::PrimFuncPtr Program() const {
    switch (std::get<0>(GetParam())) {
      case 0:
        return MatmulRelu(24, 32, 16);
      case 1:
        return Matmul(7, 13, 11);
      case 2:
        return PaddedConv();
      case 3:
        return Norm(2, 96);
      case 4:
        return Dense(1, 24, 96);
      case 5:
        return Transposed(24, 40);
      default:
        return SmallSoftmax();
    }
  }
  int cores() const { return std::get<1>(GetParam()); }
};

// All sampled, mutated or crossed candidates compute the same as the program,
// and their complete traces replay to the same program without the space.
TEST_P(EveryProgramTest, CandidatesComputeTheSame) {
  const ir::PrimFuncPtr program = Program();
  const auto space = Space(program, cores());
  Rng rng(11);
  int legal = 0;
  std::vector<Candidate> parents;
  for (int i = 0; i < 60; ++i) {
    absl::StatusOr<Candidate> candidate =
        parents.size() < 2 || i % 3 == 0 ? space->Sample(rng)
        : i % 3 == 1
            ? space->Mutate(parents[rng.Below(parents.size())], rng)
            : space->Crossover(parents[rng.Below(parents.size())],
                               parents[rng.Below(parents.size())], rng);
    if (!candidate.ok()) continue;
    auto schedule = space->Apply(*candidate);
    if (!schedule.ok()) {
      EXPECT_EQ(schedule.status().code(), absl::StatusCode::kFailedPrecondition)
          << schedule.status();
      continue;
    }
    ++legal;
    parents.push_back(*candidate);
    const ir::PrimFuncPtr scheduled = schedule->module().Find("main");
    ExpectSameOutputs(*program, *scheduled);

    auto trace = schedule::Trace::Parse(schedule->trace().Print());
    ASSERT_TRUE(trace.ok()) << trace.status();
    auto replayed = schedule::Replay(*trace, ir::IRModule{{program}});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(ir::Print(*replayed->module().Find("main")),
              ir::Print(*scheduled));
    auto back = space->FromRecord(*trace);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(CandidateText(*back), CandidateText(*candidate));
  }
  EXPECT_GE(legal, 20);
}

INSTANTIATE_TEST_SUITE_P(Programs, EveryProgramTest,
                         ::testing::Combine(::testing::Range(0, 7),
                                            ::testing::Values(1, 4)));

// Expects that what was found for `program` is a legal candidate of `other`,
// for at least one point in `least_one_in`, and computes the same as `other`.
void ExpectNearest(const ir::PrimFuncPtr& program, const ir::PrimFuncPtr& other,
                   uint64_t seed, int least_one_in) {
  const auto from = Space(program);
  const auto to = Space(other);
  Rng rng(seed);
  int applied = 0, near = 0;
  for (int i = 0; i < 60; ++i) {
    const auto schedule = from->Apply(*from->Sample(rng));
    if (!schedule.ok()) continue;
    ++applied;
    const auto nearest = to->Nearest(schedule->trace());
    if (!nearest.ok()) {
      EXPECT_EQ(nearest.status().code(), absl::StatusCode::kNotFound);
      continue;
    }
    const auto adapted = to->Apply(*nearest);
    if (!adapted.ok()) continue;
    ++near;
    ExpectSameOutputs(*other, *adapted->module().Find("main"));
  }
  EXPECT_GT(applied, 20);
  EXPECT_GE(near, applied / least_one_in);
}

TEST(DesignSpaceTest, TracesOfOtherExtentsHaveANearestCandidate) {
  ExpectNearest(MatmulRelu(48, 64, 32), MatmulRelu(24, 80, 16), /*seed=*/3,
                /*least_one_in=*/2);
}

// Elementwise blocks behind the same sums are inlined into the last one.
TEST(DesignSpaceTest, TracesWithOtherEpiloguesHaveANearestCandidate) {
  const auto type = ir::DataType::Float(32);
  const te::Tensor a = te::Placeholder("A", {24, 16}, type);
  const te::Tensor b = te::Placeholder("B", {16, 80}, type);
  const te::Tensor c = te::Matmul(a, b, {}, "C");
  ExpectNearest(MatmulRelu(48, 64, 32),
                Build({a, b, te::Tanh(te::Add(te::Multiply(c, c), c))}),
                /*seed=*/6, /*least_one_in=*/3);
}

TEST(DesignSpaceTest, TheNearestCandidateOfAnOwnTraceIsItself) {
  const auto space = Space(MatmulRelu(48, 64, 32));
  Rng rng(4);
  for (int i = 0; i < 20; ++i) {
    const Candidate candidate = *space->Sample(rng);
    const auto schedule = space->Apply(candidate);
    if (!schedule.ok()) continue;
    const auto nearest = space->Nearest(schedule->trace());
    ASSERT_TRUE(nearest.ok()) << nearest.status();
    EXPECT_EQ(CandidateText(*nearest), CandidateText(candidate));
  }
}

TEST(DesignSpaceTest, TracesOfOtherProgramsHaveNone) {
  const auto space = Space(MatmulRelu(48, 64, 32));
  const auto other = Space(Norm(2, 96));
  Rng rng(5);
  const auto schedule = other->Apply(*other->Sample(rng));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(space->Nearest(schedule->trace()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(space->Nearest(schedule::Trace()).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(DesignSpaceTest, SamplingDependsOnTheSeedAlone) {
  const auto a = Space(MatmulRelu(32, 32, 32));
  const auto b = Space(MatmulRelu(32, 32, 32));
  Rng x(3), y(3);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(CandidateText(*a->Sample(x)), CandidateText(*b->Sample(y)));
  }
}

TEST(DesignSpaceTest, SamplesOfASketchAreOfThatSketch) {
  const auto space = Space(Matmul(32, 32, 32));
  ASSERT_GT(space->sketches().size(), 1u);
  Rng rng(4);
  for (size_t i = 0; i < space->sketches().size(); ++i) {
    const int sketch = static_cast<int>(i);
    std::set<uint64_t> points;
    for (int draw = 0; draw < 10; ++draw) {
      const auto candidate = space->SampleOf(sketch, rng);
      ASSERT_TRUE(candidate.ok()) << candidate.status();
      EXPECT_EQ(candidate->sketch, sketch);
      points.insert(candidate->Fingerprint());
    }
    EXPECT_GT(points.size(), 1u);
  }
}

TEST(DesignSpaceTest, MutationChangesOneOrMoreDecisionsOfTheSameSketch) {
  const auto space = Space(MatmulRelu(32, 32, 32));
  Rng rng(5);
  const Candidate parent = *space->Sample(rng);
  std::set<uint64_t> children;
  for (int i = 0; i < 50; ++i) {
    auto child = space->Mutate(parent, rng);
    ASSERT_TRUE(child.ok()) << child.status();
    EXPECT_EQ(child->sketch, parent.sketch);
    children.insert(child->Fingerprint());
  }
  EXPECT_GT(children.size(), 10u);
}

TEST(DesignSpaceTest, DifferentSketchesDoNotCross) {
  const auto space = Space(Matmul(32, 32, 32));
  Rng rng(5);
  Candidate a = *space->Sample(rng), b = a;
  b.sketch = (a.sketch + 1) % static_cast<int>(space->sketches().size());
  EXPECT_EQ(space->Crossover(a, b, rng).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(DesignSpaceTest, SketchesCarryNoDecisions) {
  const auto space = Space(Matmul(8, 8, 8));
  for (const schedule::Trace& sketch : space->sketches()) {
    for (const ir::Attr& decision : sketch.Decisions()) {
      EXPECT_EQ(decision, ir::Attr());
    }
  }
}

TEST(DesignSpaceTest, ASketchByHandKeepsItsOwnDecisions) {
  auto trace = schedule::Trace::Parse(R"(
b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
v4, v5 = sch.sample_perfect_tile(l1, n=2, max_innermost_factor=8)
l6, l7 = sch.split(l1, factors=[v4, v5])
v8, v9 = sch.sample_perfect_tile(l2, n=2, max_innermost_factor=8, decision=[4, 2])
l10, l11 = sch.split(l2, factors=[v8, v9])
)");
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto space = DesignSpace::FromTrace(Matmul(8, 8, 8), TestTarget(), *trace);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ((*space)->ApproximateSize(), 4);
  Rng rng(1);
  std::set<uint64_t> keys;
  for (int i = 0; i < 100; ++i) {
    auto candidate = (*space)->Sample(rng);
    ASSERT_TRUE(candidate.ok());
    EXPECT_EQ(candidate->decisions[1], ir::Attr(ir::AttrList{4, 2}));
    ASSERT_TRUE((*space)->Apply(*candidate).ok());
    keys.insert(candidate->Fingerprint());
  }
  EXPECT_EQ(keys.size(), 4u);
}

TEST(DesignSpaceTest, TracesOfOthersAreNotFound) {
  auto trace = schedule::Trace::Parse("b0 = sch.get_block(\"C\")\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(Space(Matmul(8, 8, 8))->FromRecord(*trace).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(DesignSpaceTest, DecisionsOfTheWrongNumberAreRejected) {
  const auto space = Space(Matmul(8, 8, 8));
  EXPECT_FALSE(space->Apply(Candidate{0, {}}).ok());
  EXPECT_EQ(space->Apply(Candidate{99, {}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Whether a trace of the space may change what floats come out.
bool HasChangedFloats(const DesignSpace& space) {
  for (const schedule::Trace& sketch : space.sketches()) {
    const std::string text = sketch.Print();
    for (const char* mark :
         {"winograd(", "skip_zeros(", "online_softmax(", "skip_padding"}) {
      if (text.find(mark) != std::string::npos) return true;
    }
  }
  return false;
}

TEST(DesignSpaceTest, KeepsFloatsWhereTheyComeOutAsWritten) {
  for (const ir::PrimFuncPtr& program : {PaddedConv(), TransposedConv()}) {
    const auto all = DesignSpace::Create(program, TestTarget());
    const auto strict =
        DesignSpace::Create(program, TestTarget(), ir::FloatRule::kAsWritten);
    ASSERT_TRUE(all.ok() && strict.ok());
    EXPECT_TRUE(HasChangedFloats(**all));
    EXPECT_FALSE(HasChangedFloats(**strict));
    // Not by way of records and mutations, either.
    Rng rng(3);
    int kept = 0, refused = 0;
    for (int i = 0; i < 40; ++i) {
      const auto candidate = (*all)->Sample(rng);
      ASSERT_TRUE(candidate.ok()) << candidate.status();
      const auto schedule = (*all)->Apply(*candidate);
      if (!schedule.ok()) continue;
      const bool changes =
          SpecialDifferences(*program, *schedule->module().Find("main")) > 0;
      const auto record = (*strict)->FromRecord(schedule->trace());
      ++(record.ok() ? kept : refused);
      EXPECT_FALSE(record.ok() && changes) << schedule->trace().Print();
    }
    EXPECT_GT(refused, 0);
    auto parent = (*strict)->Sample(rng);
    for (int i = 0; i < 10 && parent.ok(); ++i) {
      const auto schedule = (*strict)->Apply(*parent);
      if (schedule.ok()) {
        EXPECT_EQ(
            SpecialDifferences(*program, *schedule->module().Find("main")), 0)
            << schedule->trace().Print();
      }
      parent = (*strict)->Mutate(*parent, rng);
    }
  }
}

}  // namespace
}  // namespace tilefarm::space

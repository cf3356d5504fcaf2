// Programs that were once compiled wrongly: all ways of running each must give
// the same results, and illegal primitives must be rejected.
#include "tests/property/differential.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/ir/parser.h"
#include "compiler/schedule/schedule.h"
#include "tests/property/given_programs.h"

namespace tilefarm::property {
namespace {

std::vector<Given> AllGiven() {
  std::vector<Given> all;
  for (const auto& given :
       {GivenReductions(), GivenIterations(), GivenMoves(), GivenLowering()}) {
    all.insert(all.end(), given.begin(), given.end());
  }
  return all;
}

class GivenTest : public ::testing::TestWithParam<Given> {};

TEST_P(GivenTest, IsComputedAlike) {
  const Given& given = GetParam();
  Case c;
  c.text = given.program;
  c.exact = false;
  if (*given.trace != '\0') {
    c.traces.push_back(given.trace);
    const auto program = ir::ParseFunction(given.program);
    ASSERT_TRUE(program.ok()) << program.status();
    const auto trace = schedule::Trace::Parse(given.trace);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const auto replayed = schedule::Replay(*trace, ir::IRModule{{*program}});
    if (*given.refusal == '\0') {
      ASSERT_TRUE(replayed.ok()) << replayed.status();
    } else {
      ASSERT_EQ(replayed.status().code(), absl::StatusCode::kFailedPrecondition)
          << replayed.status();
      EXPECT_NE(replayed.status().ToString().find(given.refusal),
                std::string::npos)
          << replayed.status();
    }
  }
  const CaseReport report = CheckCase(c);
  EXPECT_EQ(report.verdict, Verdict::kAgree)
      << report.variant << ": " << report.what;
}

INSTANTIATE_TEST_SUITE_P(CompiledWronglyOnce, GivenTest,
                         ::testing::ValuesIn(AllGiven()), [](const auto& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace tilefarm::property

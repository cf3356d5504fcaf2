#include "database/best_match.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm::database {
namespace {

using target::Match;
using ::testing::HasSubstr;

// A contender on the wanted device.
Contender Exact(int64_t id, double median) {
  Contender c;
  c.record_id = id;
  c.standing.seconds = median;
  c.match = Match::kExact;
  c.same_model = true;
  c.equal_cores = true;
  c.device = "box#1";
  c.device_model = "model-1";
  c.kind = "x86-64";
  c.cpu = "znver4";
  c.fingerprint = "fp";
  return c;
}

int64_t Winner(const std::vector<Contender>& contenders) {
  const auto best = ChooseBest(contenders);
  return best ? contenders[*best].record_id : 0;
}

TEST(ChooseBest, NothingFromNothing) { EXPECT_EQ(Winner({}), 0); }

TEST(ChooseBest, TheSmallestMedianThenTheOlderRecord) {
  EXPECT_EQ(Winner({Exact(1, 3e-3), Exact(2, 1e-3), Exact(3, 1e-3)}), 2);
}

TEST(ChooseBest, FollowsTheFallbackOrder) {
  Contender family = Exact(1, 1e-6);
  family.match = Match::kFamily;
  Contender microarch = Exact(2, 1e-5);
  microarch.match = Match::kMicroarch;
  Contender key = Exact(3, 1e-4);  // same key, but measured on another model
  key.same_model = false;
  const Contender exact = Exact(4, 1e-3);
  EXPECT_EQ(Winner({family, microarch, key, exact}), 4);
  EXPECT_EQ(Winner({family, microarch, key}), 3);
  EXPECT_EQ(Winner({family, microarch}), 2);
  EXPECT_EQ(Winner({family}), 1);
}

TEST(ChooseBest, EqualCoresFirstAtEachStep) {
  Contender other_cores = Exact(1, 1e-6);
  other_cores.equal_cores = false;
  const Contender exact = Exact(2, 1e-3);
  EXPECT_EQ(Winner({other_cores, exact}), 2);
  // The device model takes precedence over the number of cores.
  Contender microarch = Exact(3, 1e-6);
  microarch.same_model = false;
  EXPECT_EQ(Winner({other_cores, microarch}), 1);
  // Within the step, equal cores take precedence over the closer target.
  Contender same_key = other_cores;
  same_key.same_model = false;
  Contender same_cpu = Exact(4, 1e-3);
  same_cpu.match = Match::kMicroarch;
  EXPECT_EQ(Winner({same_key, same_cpu}), 4);
}

TEST(ChooseBest, FreshBeforeStale) {
  Contender stale = Exact(1, 1e-6);
  stale.fresh = false;
  EXPECT_EQ(Winner({stale, Exact(2, 1e-3)}), 2);
}

TEST(ChooseBest, RanksWithinOneProtocol) {
  Contender cold = Exact(1, 1e-6);
  cold.protocol.cold_cache = true;
  Contender packed = Exact(2, 1e-6);
  packed.protocol.layout = "packed";
  EXPECT_EQ(Winner({cold, packed, Exact(3, 1e-3)}), 3);
  EXPECT_EQ(Winner({cold, packed}), 2);
}

TEST(ChooseBest, RanksWithinOneDeviceModel) {
  // Two machines of one microarchitecture: lower medians of the faster machine
  // do not make its schedules better.
  std::vector<Contender> contenders = {Exact(1, 5e-3), Exact(2, 4e-3),
                                       Exact(3, 1e-3)};
  for (Contender& c : contenders) c.same_model = false;
  contenders[2].device_model = "a faster machine";
  EXPECT_EQ(Winner(contenders), 2);
  // If equally tuned, the latest one wins.
  contenders.erase(contenders.begin());
  EXPECT_EQ(Winner(contenders), 3);
}

TEST(ReasonFor, SaysWhichStepAndWhatDiffers) {
  Contender c = Exact(1, 1e-3);
  EXPECT_EQ(ReasonFor(c), "exact device model");
  c.equal_cores = false;
  c.cores = 8;
  EXPECT_EQ(ReasonFor(c), "exact device model, tuned for 8 cores");
  c = Exact(1, 1e-3);
  c.same_model = false;
  EXPECT_EQ(ReasonFor(c), "same microarchitecture (znver4)");
  c.match = Match::kFamily;
  c.fresh = false;
  EXPECT_THAT(ReasonFor(c), HasSubstr("compatible ISA family"));
  EXPECT_THAT(ReasonFor(c), HasSubstr("x86-64:znver4"));
  EXPECT_THAT(ReasonFor(c), HasSubstr("stale (made by fp)"));
}

}  // namespace
}  // namespace tilefarm::database

// Random programs with schedules of GPUs: the default one, points of the design
// space, and schedules by hand. All run as kernels on the simulator, in several
// orders of threads, and give what the interpreter and the oracle give. A
// failure prints the seed of its program, which alone reproduces it, reduced:
//   program_fuzz --gpu --traces 2 --seed N --count 1
// program_fuzz --gpu does the same for as long as there is time.
#include <gtest/gtest.h>

#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/property/given_kernels.h"
#include "tests/property/gpu_differential.h"
#include "tests/property/in_child.h"

namespace tilefarm::property {
namespace {

constexpr uint64_t kFirstSeed = 1;
// Programs beyond the first ones that found errors of lowering.
constexpr uint64_t kFoundSeeds[] = {217, 249,  281,  314,  326,  371, 393,
                                    394, 1051, 1243, 1343, 1391, 1411};
constexpr int kDraws = 2;
constexpr int kByHand = 2 * kDraws;
constexpr int kPairs = 1000;
constexpr unsigned kCaseSeconds = 60;
// A slow machine compares fewer than kPairs.
constexpr absl::Duration kBudget = absl::Seconds(240);
// Of the points of the design space, lowering refuses fewer.
constexpr double kRefusedShare = 0.02;

// What a child process found for one program.
struct Outcome {
  Verdict verdict = Verdict::kAgree;
  PrimitiveCounts counts;
  std::string report;
};

// Of the case that `make` returns, which counts what it tries.
template <typename Make>
Outcome Check(const Make& make) {
  Outcome outcome;
  std::string crashed;
  const std::string text = InChild(
      [&](std::ostream& out) {
        PrimitiveCounts counts;
        const Case c = make(&counts);
        const CaseReport report = CheckGpuCase(c, &counts);
        out << static_cast<int>(report.verdict) << "\n";
        PrintCounts(counts, out);
        out << "report\n"
            << report.variant << ": " << report.what << "\n"
            << c.text << "\n"
            << report.trace;
      },
      kCaseSeconds, &crashed);
  if (!crashed.empty()) {
    return {Verdict::kDiffer, {}, crashed};
  }
  std::istringstream in(text);
  int verdict = 0;
  in >> verdict >> std::ws;
  outcome.verdict = static_cast<Verdict>(verdict);
  for (std::string line; std::getline(in, line) && line != "report";) {
    AddCounts(line, outcome.counts);
  }
  outcome.report.assign(std::istreambuf_iterator<char>(in), {});
  return outcome;
}

TEST(GpuKernelsPropertyTest, GivenKernelsRunAsTheyStand) {
  // A trace that changes nothing; the default schedule runs, too.
  constexpr char kAsItStands[] = "b0 = sch.get_block(\"root\")\n";
  for (const GivenKernel& given : GivenKernels()) {
    const std::pair<uint64_t, const char*> kRuns[] = {
        {1, ""},
        {2, ""},  // in the simulator, without and with async copies
        {1, "sim:sm_90a"},
        {1, "cuda:sm_90a"}};
    for (const auto& [seed, target] : kRuns) {
      if (given.tensor_cores && &seed == &kRuns[0].first) continue;
      if (given.clusters && *target == 0) continue;
      if (!given.clusters && &seed == &kRuns[2].first) continue;
      Outcome outcome = Check([&](PrimitiveCounts*) {
        return Case{.text = given.program,
                    .traces = {kAsItStands},
                    .input_seed = seed,
                    .gpu_target = target};
      });
      EXPECT_EQ(outcome.verdict, Verdict::kAgree)
          << given.name << " " << target << "\n"
          << outcome.report;
      EXPECT_EQ(outcome.counts.accepted[kRanByHand], 1)
          << given.name << " " << target;
    }
  }
}

TEST(GpuKernelsPropertyTest, ComputeWhatTheProgramDoes) {
  const absl::Duration start = Clock::Real().Monotonic();
  PrimitiveCounts total;
  const auto ran = [&] {
    return total.accepted[kRanDefault] + total.accepted[kRanDraws] +
           total.accepted[kRanByHand];
  };
  int programs = 0, refused = 0, failures = 0;
  std::vector<uint64_t> seeds(std::begin(kFoundSeeds), std::end(kFoundSeeds));
  for (uint64_t i = 0; i < kPairs; ++i) seeds.push_back(kFirstSeed + i);
  for (const uint64_t seed : seeds) {
    if (ran() >= kPairs || failures >= 3 ||
        Clock::Real().Monotonic() - start >= kBudget) {
      break;
    }
    Outcome outcome = Check([&](PrimitiveCounts* counts) {
      return MakeGpuCase(seed, kDraws, kByHand, "", counts);
    });
    ++programs;
    refused += outcome.verdict == Verdict::kRefused;
    if (outcome.verdict == Verdict::kDiffer) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << "\n" << outcome.report;
    }
    for (const auto& [name, tried] : outcome.counts.tried) {
      total.tried[name] += tried;
      total.accepted[name] += outcome.counts.accepted[name];
    }
  }
  std::cout << programs << " programs from seed " << kFirstSeed << ", "
            << refused << " refused; " << ran() << " pairs ran\n";
  int refused_draws = 0;
  for (const auto& [name, tried] : total.tried) {
    if (!absl::StrContains(name, ":") || absl::StartsWith(name, "gpu:")) {
      continue;
    }
    if (absl::StartsWith(name, kRefusedDraws)) refused_draws += tried;
    std::cout << "  " << name << ": " << total.accepted[name] << " of " << tried
              << "\n";
  }
  EXPECT_GT(ran(), 0);
  EXPECT_LE(refused_draws, kRefusedShare * total.tried[kRanDraws]);
  // Schedules by hand that are mostly refused test little.
  EXPECT_GT(2 * total.accepted[kRanByHand], total.tried[kRanByHand]);
}

}  // namespace
}  // namespace tilefarm::property

// Finds the commit that made a benchmark slower, with few builds and although
// measurements are noisy.
//
//   Bisection bisection(commits, options);
//   for (;;) {
//     const BisectStep step = bisection.Next();
//     if (step.kind != BisectStep::Kind::kMeasure) break;   // step has the end
//     build step.commit, unless bisection.built(step.commit)
//     measure it against step.reference until SideTest settles
//     bisection.Report(step, answer);
//   }
//
// Builds are slow and measurements are quick, so each answer is sought with a
// small error (SideTest), and a wrong one is still survived: the search keeps
// the probability of every commit being the first slow one (Horstein, 1963;
// Burnashev and Zigangirov, 1974), asks at its median, and is done when one
// commit has most of it and the pair of that commit and the one before it was
// compared directly. A commit that cannot be built is skipped; if the first
// slow commit is next to skipped ones, the answer is their range.
#ifndef TILEFARM_SERVER_REGRESSION_BISECT_H_
#define TILEFARM_SERVER_REGRESSION_BISECT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/regression/sequential_test.h"

namespace tilefarm::regression {

// On which side of a bound a ratio lies.
enum class Side { kBelow, kAbove, kUnclear };

// A sequential test of one bound, by the same looks as SequentialTest.
struct SideOptions {
  double bound = 1.025;  // a ratio; for a change of r: sqrt(r), its middle
  double error = 0.02;
  int most_clusters = 64;
  int looks = 6;
};

// Not thread-safe.
class SideTest {
 public:
  // InvalidArgument: as SequentialTest::Create.
  static absl::StatusOr<SideTest> Create(const SideOptions& options);
  int clusters_to_next_look() const;
  absl::Status Add(double log_ratio);
  void Finish();  // as SequentialTest::Finish
  bool settled() const;
  Side side() const;  // kUnclear until it is settled
  const RatioInterval& interval() const;

 private:
  explicit SideTest(SequentialTest test, double bound)
      : test_(std::move(test)), bound_(bound) {}
  SequentialTest test_;
  double bound_;
};

enum class BisectAnswer {
  kGood,     // as fast as the reference
  kBad,      // slower
  kUnclear,  // the budget was spent without an answer
  kSkip,     // it does not build or run
};

struct BisectStep {
  enum class Kind {
    kMeasure,    // measure `commit` against `reference`
    kFound,      // `commit` is the first slow one
    kRange,      // one of [first, last] is; the ones between do not build
    kNoChange,   // the last commit is not slower than the first
    kUndecided,  // the answers contradict each other, or stay unclear
  };
  Kind kind = Kind::kMeasure;
  // Indices into the commits.
  int commit = 0;
  int reference = 0;
  int first = 0, last = 0;  // of kRange; of kUndecided: the likeliest range
  double probability = 0;   // of kFound, kRange
  // kMeasure: the last question, which compares the commit with the one before
  // it, afresh.
  bool edge = false;
};

struct BisectOptions {
  // The probability that an answer of good or bad is wrong; SideOptions::error
  // plus what the noise model does not cover.
  double answer_error = 0.03;
  // Ends once one commit (or range) has this probability.
  double confidence = 0.99;
  // How often the same commit may be asked without an answer, and how many
  // questions there are altogether.
  int most_unclear = 2;
  int most_questions = 200;
};

// Not thread-safe. A function of the answers, so that it can be restored.
class Bisection {
 public:
  // `commits`: how many there are, oldest first, the first one known to be good
  // and the last one believed to be bad; at least 2. InvalidArgument otherwise.
  static absl::StatusOr<Bisection> Create(int commits,
                                          const BisectOptions& options = {});

  // The next question or the end. The same until Report is called.
  BisectStep Next() const;
  // The answer to Next(). FailedPrecondition: it is at its end.
  absl::Status Report(BisectAnswer answer);

  // Commits that were asked about and answered (or not skipped): they are
  // built.
  bool built(int commit) const { return built_[static_cast<size_t>(commit)]; }
  int builds() const;
  int questions() const { return questions_; }
  // The probability of each commit being the first slow one; [0] is 0.
  const std::vector<double>& probabilities() const { return probability_; }

 private:
  Bisection(int commits, const BisectOptions& options);

  BisectOptions options_;
  std::vector<double> probability_;
  std::vector<bool> built_, skipped_;
  std::vector<int> unclear_;
  int questions_ = 0;
  bool last_is_bad_ = false;
  // The pair (edge_ - 1, edge_) was compared directly and differs.
  std::optional<int> confirmed_edge_;
  BisectStep step_;
  void Advance();
};

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_BISECT_H_

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
// commit has nearly all of it and was also compared directly with the commit
// before it. Asking again about a commit that is built costs no build. A commit
// that does not build, or whose measurements stay unclear, is skipped; if the
// first slow commit is next to skipped ones, the answer is their range.
#ifndef TILEFARM_SERVER_REGRESSION_BISECT_H_
#define TILEFARM_SERVER_REGRESSION_BISECT_H_

#include <optional>
#include <string>
#include <utility>
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
  RatioInterval interval() const;

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
    kRange,      // one of [first, last] is; all but `last` were skipped
    kNoChange,   // the last commit is as fast as the first
    kUndecided,  // `reason` says why; [first, last] is the likeliest range
  };
  Kind kind = Kind::kMeasure;
  // Indices into the commits.
  int commit = 0;
  int reference = 0;
  int first = 0, last = 0;  // of kFound, kRange, kUndecided
  double probability = 0;   // of [first, last]
  std::string reason;
};

struct BisectOptions {
  // The probability that an answer of good or bad is wrong: SideOptions::error,
  // and something for what the noise model does not cover.
  double answer_error = 0.03;
  // Ends once one commit (or range) has this probability.
  double confidence = 0.99;
  // A commit that was asked about so often without an answer is skipped. To ask
  // again takes seconds, and what made an answer unclear may pass.
  int most_unclear = 4;
  int most_questions = 200;
};

// Not thread-safe; a value type. A function of the answers, so that it can be
// restored.
class Bisection {
 public:
  // `commits`: how many there are, oldest first, the first one known to be good
  // and the last one believed to be bad. InvalidArgument: fewer than 2, or more
  // than 100,000; options out of range.
  static absl::StatusOr<Bisection> Create(int commits,
                                          const BisectOptions& options = {});

  // The next question or the end. The same until Report is called. The first
  // question compares the last commit with the first.
  const BisectStep& Next() const { return step_; }
  // The answer to Next(). kSkip is about Next().commit.
  // FailedPrecondition: it is at its end.
  absl::Status Report(BisectAnswer answer);

  // Whether the commit was measured, so that it is built. The first one counts
  // as built once anything was measured.
  bool built(int commit) const { return built_[static_cast<size_t>(commit)]; }
  // Commits that are built or did not build.
  int builds() const;
  int questions() const { return questions_; }
  // The probability of each commit being the first slow one; [0] is 0.
  const std::vector<double>& probabilities() const { return probability_; }

 private:
  // Commits that no question can tell apart: (before, last], all but `last`
  // skipped.
  struct Cell {
    int before = 0, last = 0;
    double probability = 0;
  };

  Bisection(int commits, const BisectOptions& options);
  int last_commit() const { return static_cast<int>(probability_.size()) - 1; }
  std::vector<Cell> Cells() const;
  bool AsksEdge() const { return step_.reference != 0; }
  void UpdateEnds(BisectAnswer answer);
  void UpdateProbabilities(bool bad);
  Cell CellOf(int last) const;
  void Choose();
  void End(BisectStep::Kind kind, const Cell& cell, std::string reason = "");

  BisectOptions options_;
  std::vector<double> probability_;
  std::vector<bool> built_, skipped_;
  std::vector<int> unclear_;  // questions about a commit without an answer
  int unclear_edges_ = 0;
  int questions_ = 0;
  // Answers about the last commit before the search proper.
  int ends_good_ = 0, ends_bad_ = 0;
  bool searching_ = false;
  // Whether the last commit of a cell was slower than the commit before the
  // cell when both were compared directly.
  std::vector<bool> edge_confirmed_;
  BisectStep step_;
};

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_BISECT_H_

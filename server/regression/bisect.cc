#include "server/regression/bisect.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tilefarm::regression {
namespace {

constexpr int kMostCommits = 100'000;
// Answers that agree before the last commit counts as unchanged. One wrong
// "good" would end the search; a wrong "bad" is found out by it.
constexpr int kGoodEnds = 2;
// Differences of probabilities that are rounding.
constexpr double kRounding = 1e-9;

}  // namespace

absl::StatusOr<SideTest> SideTest::Create(const SideOptions& options) {
  if (!(options.bound > 0 && std::isfinite(options.bound))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the bound of a ratio must be positive, but is ", options.bound));
  }
  // The verdicts of SequentialTest are not used, only its looks: values are
  // given to it relative to the bound, and what is not within a hair of the
  // bound is slower or faster than it.
  SequentialOptions test;
  test.threshold = 1e-9;
  test.error = options.error;
  test.most_clusters = options.most_clusters;
  test.looks = options.looks;
  TF_ASSIGN_OR_RETURN(SequentialTest sequential, SequentialTest::Create(test));
  return SideTest(std::move(sequential), options.bound);
}

int SideTest::clusters_to_next_look() const {
  return test_.clusters_to_next_look();
}

absl::Status SideTest::Add(double log_ratio) {
  return test_.Add(log_ratio - std::log(bound_));
}

void SideTest::Finish() { test_.Finish(); }

bool SideTest::settled() const { return test_.settled(); }

Side SideTest::side() const {
  switch (test_.verdict()) {
    case Verdict::kSlower:
      return Side::kAbove;
    case Verdict::kFaster:
      return Side::kBelow;
    case Verdict::kSame:
    case Verdict::kInconclusive:
      break;
  }
  return Side::kUnclear;
}

RatioInterval SideTest::interval() const {
  RatioInterval interval = test_.interval();
  interval.ratio *= bound_;
  interval.low *= bound_;
  interval.high *= bound_;
  return interval;
}

absl::StatusOr<Bisection> Bisection::Create(int commits,
                                            const BisectOptions& options) {
  if (commits < 2 || commits > kMostCommits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a bisection takes 2 to ", kMostCommits,
        " commits, from the good one to the bad one, not ", commits));
  }
  if (!(options.answer_error > 0 && options.answer_error < 0.5)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the error of an answer is above 0 and below 0.5, but is ",
                     options.answer_error));
  }
  if (!(options.confidence > 0.5 && options.confidence < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a confidence is above 0.5 and below 1, but is ", options.confidence));
  }
  if (options.most_unclear < 1 || options.most_questions < 1) {
    return absl::InvalidArgumentError("a bisection asks at least once");
  }
  return Bisection(commits, options);
}

Bisection::Bisection(int commits, const BisectOptions& options)
    : options_(options) {
  const auto count = static_cast<size_t>(commits);
  probability_.assign(count, 1.0 / (commits - 1));
  probability_[0] = 0;
  built_.assign(count, false);
  skipped_.assign(count, false);
  unclear_.assign(count, 0);
  edge_confirmed_.assign(count, false);
  step_.commit = commits - 1;
}

int Bisection::builds() const {
  int count = 0;
  for (size_t i = 0; i < built_.size(); ++i) {
    count += built_[i] || skipped_[i] ? 1 : 0;
  }
  return count;
}

absl::Status Bisection::Report(BisectAnswer answer) {
  if (step_.kind != BisectStep::Kind::kMeasure) {
    return absl::FailedPreconditionError("the bisection is at its end");
  }
  ++questions_;
  const auto commit = static_cast<size_t>(step_.commit);
  if (answer != BisectAnswer::kSkip) {
    built_[commit] = true;
    built_[static_cast<size_t>(step_.reference)] = true;
  }
  if (!searching_) {
    UpdateEnds(answer);
  } else if (answer == BisectAnswer::kGood || answer == BisectAnswer::kBad) {
    UpdateProbabilities(answer == BisectAnswer::kBad);
  } else if (AsksEdge()) {
    // Both commits were measured against the first one, so neither is skipped.
    if (answer == BisectAnswer::kSkip ||
        ++unclear_edges_ >= options_.most_unclear) {
      End(BisectStep::Kind::kUndecided, CellOf(step_.commit),
          "compared directly, the commits on both sides of the change cannot "
          "be told apart");
    }
  } else if (answer == BisectAnswer::kSkip ||
             ++unclear_[commit] >= options_.most_unclear) {
    skipped_[commit] = true;
  }
  if (searching_ && step_.kind == BisectStep::Kind::kMeasure) Choose();
  return absl::OkStatus();
}

// The question whether there is anything to find.
void Bisection::UpdateEnds(BisectAnswer answer) {
  const Cell all{.before = 0, .last = last_commit(), .probability = 1};
  switch (answer) {
    case BisectAnswer::kSkip:
      End(BisectStep::Kind::kUndecided, all, "the last commit does not build");
      return;
    case BisectAnswer::kUnclear:
      if (++unclear_.back() >= options_.most_unclear) {
        End(BisectStep::Kind::kUndecided, all,
            "whether the last commit is slower than the first stays unclear");
      }
      return;
    case BisectAnswer::kGood:
      ++ends_good_;
      break;
    case BisectAnswer::kBad:
      ++ends_bad_;
      break;
  }
  if (ends_bad_ > ends_good_) {
    searching_ = true;
  } else if (ends_good_ - ends_bad_ >= kGoodEnds) {
    End(BisectStep::Kind::kNoChange, all);
  }
}

void Bisection::UpdateProbabilities(bool bad) {
  const double right = 1 - options_.answer_error;
  const double wrong = options_.answer_error;
  if (bad && CellOf(step_.commit).before == step_.reference) {
    edge_confirmed_[static_cast<size_t>(step_.commit)] = true;
  }
  // A bad commit has the first slow one after the reference, up to itself.
  double sum = 0;
  for (int i = 1; i <= last_commit(); ++i) {
    const bool between = i > step_.reference && i <= step_.commit;
    double& p = probability_[static_cast<size_t>(i)];
    p *= between == bad ? right : wrong;
    sum += p;
  }
  for (double& p : probability_) p /= sum;
}

Bisection::Cell Bisection::CellOf(int last) const {
  for (const Cell& cell : Cells()) {
    if (cell.last == last) return cell;
  }
  return Cell{.before = last - 1, .last = last};
}

std::vector<Bisection::Cell> Bisection::Cells() const {
  std::vector<Cell> cells;
  Cell cell;
  for (int i = 1; i <= last_commit(); ++i) {
    cell.probability += probability_[static_cast<size_t>(i)];
    if (skipped_[static_cast<size_t>(i)]) continue;
    cell.last = i;
    cells.push_back(cell);
    cell = Cell{.before = i};
  }
  return cells;
}

void Bisection::Choose() {
  const std::vector<Cell> cells = Cells();
  const Cell& likeliest = *std::max_element(
      cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
        return a.probability < b.probability;
      });
  const bool confirmed = edge_confirmed_[static_cast<size_t>(likeliest.last)];
  // A single cell was compared as a whole.
  if (likeliest.probability >= options_.confidence &&
      (confirmed || cells.size() == 1)) {
    End(likeliest.last - likeliest.before == 1 ? BisectStep::Kind::kFound
                                               : BisectStep::Kind::kRange,
        likeliest);
    return;
  }
  if (questions_ >= options_.most_questions) {
    End(BisectStep::Kind::kUndecided, likeliest,
        absl::StrCat("the answers to ", questions_,
                     " questions contradict each other"));
    return;
  }
  // The direct comparison is due once the other answers point to the cell. It
  // is as good a question as any then, and both commits are built.
  if (!confirmed && likeliest.before > 0 && likeliest.probability > 0.5 &&
      built_[static_cast<size_t>(likeliest.last)] &&
      built_[static_cast<size_t>(likeliest.before)]) {
    step_.commit = likeliest.last;
    step_.reference = likeliest.before;
    return;
  }
  // The commit that halves the probability; of equals, one that is built. The
  // last commit tells nothing: all of the probability is before its end.
  double best = 2;
  bool best_built = false;
  double below = 0;
  for (const Cell& cell : cells) {
    if (cell.last == last_commit()) break;
    below += cell.probability;
    const double distance = std::abs(below - 0.5);
    const bool is_built = built_[static_cast<size_t>(cell.last)];
    if (distance < best - kRounding ||
        (distance < best + kRounding && is_built && !best_built)) {
      best = distance;
      best_built = is_built;
      step_.commit = cell.last;
      step_.reference = 0;
    }
  }
}

void Bisection::End(BisectStep::Kind kind, const Cell& cell,
                    std::string reason) {
  step_.kind = kind;
  step_.first = cell.before + 1;
  step_.last = cell.last;
  step_.commit = cell.last;
  step_.reference = 0;
  step_.probability = cell.probability;
  step_.reason = std::move(reason);
}

}  // namespace tilefarm::regression

// One benchmark of a gate: a screening, and for a suspect a fresh run.
//
//   screening ---- same, faster, inconclusive ---------------------> settled
//        '------- slower: a suspect --> confirmation --------------> settled
//
// Screening and confirmation are two independent sequential tests. The
// confirmation uses fresh clusters only, with coins of its own, on another
// device of the class where there is one. Its error alone bounds the gate's
// false alarms, whatever the screening did: that may therefore be laxer, which
// saves time where nothing has changed.
//
// Errors are shared equally by the benchmarks (Bonferroni), not step by step
// (Holm): each benchmark is then settled by its own data and at its own time,
// the order of benchmarks and devices has no influence, and halving the error
// costs one more cluster only (FewestRanked).
#ifndef TILEFARM_SERVER_REGRESSION_CONFIRMED_TEST_H_
#define TILEFARM_SERVER_REGRESSION_CONFIRMED_TEST_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/regression/sequential_test.h"

namespace tilefarm::regression {

struct GateOptions {
  double threshold = 0.03;
  // The probability that any benchmark of the suite gets a wrong verdict from
  // its screening, and that any is wrongly confirmed as slower.
  double screening_error = 0.05;
  double confirmation_error = 0.01;
  // Of each of the two tests.
  int most_clusters = 48;
  int looks = 6;
};

// What is known of one benchmark at the end.
struct TestOutcome {
  Verdict verdict = Verdict::kInconclusive;
  // A slower verdict that a fresh run confirmed. Slower verdicts always are.
  bool confirmed = false;
  // Of the confirmation if there was one (the screening's estimate of a suspect
  // is biased, because it was selected for being large), else of the screening.
  RatioInterval ratio;
  std::optional<RatioInterval> screening;  // of suspects
  // Why it is inconclusive, or what became of a suspect that is not slower, in
  // a sentence; else empty.
  std::string note;
};

// Not thread-safe; a value type. Adding the same values again restores it.
class ConfirmedTest {
 public:
  enum class Phase { kScreening, kConfirmation, kSettled };

  // `benchmarks`: how many are judged together, at least 1. InvalidArgument: as
  // SequentialTest::Create.
  static absl::StatusOr<ConfirmedTest> Create(const GateOptions& options,
                                              int benchmarks);

  Phase phase() const;
  // Of the current phase; 0: settled.
  int clusters_wanted() const;
  // A cluster of the current phase. FailedPrecondition: settled.
  absl::Status Add(double log_ratio);
  // The budget of the current phase is spent, or it has no device. A screening
  // that was about to become a suspect may go on to the confirmation.
  void Finish();

  const SequentialTest& screening() const { return screening_; }
  // Null before the confirmation begins.
  const SequentialTest* confirmation() const {
    return confirmation_ ? &*confirmation_ : nullptr;
  }
  // Meaningful once settled.
  TestOutcome outcome() const;

 private:
  ConfirmedTest(SequentialTest screening, SequentialTest confirmation)
      : screening_(std::move(screening)), fresh_(std::move(confirmation)) {}
  void Advance();

  SequentialTest screening_;
  SequentialTest fresh_;  // what the confirmation begins with
  std::optional<SequentialTest> confirmation_;
};

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_CONFIRMED_TEST_H_

#include "server/regression/confirmed_test.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/regression/ratio_text.h"

namespace tilefarm::regression {
namespace {

std::string WhyInconclusive(const SequentialTest& test) {
  const RatioInterval& interval = test.interval();
  if (interval.clusters == 0) return "nothing was measured";
  if (!std::isfinite(interval.high)) {
    return absl::StrCat("its budget ended after ", interval.clusters,
                        interval.clusters == 1 ? " process" : " processes",
                        ", and an answer takes at least ",
                        test.looks().front());
  }
  return absl::StrCat("after ", interval.clusters, " processes ",
                      IntervalText(interval), " is still possible");
}

}  // namespace

absl::StatusOr<ConfirmedTest> ConfirmedTest::Create(const GateOptions& options,
                                                    int benchmarks) {
  if (benchmarks < 1) {
    return absl::InvalidArgumentError("no benchmarks to judge");
  }
  for (const double error :
       {options.screening_error, options.confirmation_error}) {
    if (!(error > 0 && error <= 0.25)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a gate's error is above 0 and at most 0.25, but is ", error));
    }
  }
  SequentialOptions test;
  test.threshold = options.threshold;
  test.most_clusters = options.most_clusters;
  test.looks = options.looks;
  test.error = options.screening_error / benchmarks;
  TF_ASSIGN_OR_RETURN(SequentialTest screening, SequentialTest::Create(test));
  // Of the two sides of a confirmation's interval only the lower one raises an
  // alarm, so it gets all of the error.
  test.error = 2 * options.confirmation_error / benchmarks;
  TF_ASSIGN_OR_RETURN(SequentialTest fresh, SequentialTest::Create(test));
  return ConfirmedTest(std::move(screening), std::move(fresh));
}

ConfirmedTest::Phase ConfirmedTest::phase() const {
  if (!screening_.settled()) return Phase::kScreening;
  if (screening_.verdict() != Verdict::kSlower) return Phase::kSettled;
  return confirmation_->settled() ? Phase::kSettled : Phase::kConfirmation;
}

int ConfirmedTest::clusters_wanted() const {
  switch (phase()) {
    case Phase::kScreening:
      return screening_.clusters_to_next_look();
    case Phase::kConfirmation:
      return confirmation_->clusters_to_next_look();
    case Phase::kSettled:
      break;
  }
  return 0;
}

absl::Status ConfirmedTest::Add(double log_ratio) {
  switch (phase()) {
    case Phase::kScreening:
      TF_RETURN_IF_ERROR(screening_.Add(log_ratio));
      Advance();
      return absl::OkStatus();
    case Phase::kConfirmation:
      return confirmation_->Add(log_ratio);
    case Phase::kSettled:
      break;
  }
  return absl::FailedPreconditionError("the benchmark is settled");
}

void ConfirmedTest::Finish() {
  if (phase() == Phase::kScreening) {
    screening_.Finish();
    Advance();
  } else if (phase() == Phase::kConfirmation) {
    confirmation_->Finish();
  }
}

void ConfirmedTest::Advance() {
  if (screening_.settled() && screening_.verdict() == Verdict::kSlower) {
    confirmation_ = fresh_;
  }
}

TestOutcome ConfirmedTest::outcome() const {
  TestOutcome outcome;
  outcome.ratio = screening_.interval();
  if (!confirmation_.has_value()) {
    outcome.verdict = screening_.verdict();
    if (outcome.verdict == Verdict::kInconclusive) {
      outcome.note = WhyInconclusive(screening_);
    }
    return outcome;
  }
  outcome.screening = screening_.interval();
  outcome.ratio = confirmation_->interval();
  const std::string suspect =
      absl::StrCat("a suspect (", ChangeText(outcome.screening->ratio), ")");
  switch (confirmation_->verdict()) {
    case Verdict::kSlower:
      outcome.verdict = Verdict::kSlower;
      outcome.confirmed = true;
      break;
    case Verdict::kSame:
      outcome.verdict = Verdict::kSame;
      outcome.note = absl::StrCat(suspect, " that a fresh run did not confirm");
      break;
    case Verdict::kFaster:
      outcome.note = absl::StrCat(suspect, " that was faster in a fresh run (",
                                  ChangeText(outcome.ratio.ratio), ")");
      break;
    case Verdict::kInconclusive:
      outcome.note = absl::StrCat(
          suspect, " that is not confirmed: ", WhyInconclusive(*confirmation_));
      break;
  }
  return outcome;
}

}  // namespace tilefarm::regression

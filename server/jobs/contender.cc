#include "server/jobs/contender.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/jobs/job.h"

namespace tilefarm::jobs {
namespace {

using database::Standing;

constexpr size_t kMostContenders = 16;
// Numbers of candidates: in the first round, whatever their times are, and in
// all rounds together.
constexpr size_t kFirstEntrants = 3;
constexpr size_t kMostEntrants = 8;
constexpr int kRounds = 3;
// A candidate whose first time is slower than the fastest by this factor may
// still be the better one.
constexpr double kCloseBehind = 1.05;

// How far behind the leader's interval a candidate must be to be proven slower.
// Samples of one process differ less than samples of two processes, because the
// placement of its memory and the load by the machine's other guests stay the
// same.
constexpr double kBehindInOneProcess = 1.3;
constexpr double kBehindInMore = 1.02;

bool InRace(const Contender& one) { return one.requested > 0; }

}  // namespace

Standing Contender::standing() const {
  Standing standing = {
      .seconds = record.median_seconds,
      .low = record.ci_low_seconds,
      .high = record.ci_high_seconds,
      .instructions = database::CountInstructions(record.trace)};
  if (rounds.count() > 0) {
    const MedianInterval interval = rounds.interval();
    standing.seconds = interval.median;
    standing.low = interval.low;
    standing.high = interval.high;
    standing.confirmed = true;
  }
  return standing;
}

void Contenders::Add(const database::Record& record) {
  const auto place =
      std::upper_bound(list_.begin(), list_.end(), record.median_seconds,
                       [](double seconds, const Contender& one) {
                         return seconds < one.record.median_seconds;
                       });
  list_.insert(place, {record});
  if (list_.size() <= kMostContenders) return;
  // Removes the slowest, unless it is the only one that can win.
  const bool keep =
      list_.back().can_win() &&
      std::none_of(list_.begin(), list_.end() - 1,
                   [](const Contender& c) { return c.can_win(); });
  list_.erase(list_.end() - (keep ? 2 : 1));
}

bool Contenders::Contains(const std::string& candidate_id) const {
  return std::any_of(list_.begin(), list_.end(), [&](const Contender& one) {
    return one.record.candidate_id == candidate_id;
  });
}

void Contenders::NoteMeasurement(const std::string& candidate_id,
                                 const database::Record& measured,
                                 const std::string& fingerprint) {
  const auto found =
      std::find_if(list_.begin(), list_.end(), [&](const Contender& one) {
        return one.record.candidate_id == candidate_id;
      });
  if (found == list_.end()) return;
  if (database::RulesOut(measured.status)) {
    list_.erase(found);
    return;
  }
  if (!CountsAsBest(measured, fingerprint) ||
      measured.device != found->record.device) {
    return;
  }
  found->rounds.Add(measured.job_id, measured.seconds.empty()
                                         ? std::vector{measured.median_seconds}
                                         : measured.seconds);
}

void Contenders::NoteStored(const database::Store& store,
                            const std::string& fingerprint) {
  const std::vector<Contender> before = list_;
  for (const Contender& contender : before) {
    const auto measurements = store.FindMeasurements(contender.record.id);
    if (!measurements.ok()) continue;
    for (const database::Record& measured : *measurements) {
      NoteMeasurement(contender.record.candidate_id, measured, fingerprint);
    }
  }
}

std::vector<const Contender*> Contenders::NextRound(const std::string& job_id) {
  if (list_.empty()) return {};
  // Rounds that a former process requested for this job.
  for (Contender& one : list_) {
    if (one.rounds.job_id() != job_id) continue;
    one.requested = std::max(one.requested, one.rounds.count());
  }
  const bool first_round = std::none_of(list_.begin(), list_.end(), InRace);
  size_t entrants = std::count_if(list_.begin(), list_.end(), InRace);
  const Contender* leader = winner();
  // Without a leader every candidate may enter.
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const Standing leading = leader == nullptr
                               ? Standing{.seconds = kNever, .high = kNever}
                               : leader->standing();
  const auto fastest =
      std::find_if(list_.begin(), list_.end(),
                   [](const Contender& c) { return c.can_win(); });
  const double fastest_first =
      fastest == list_.end() ? kNever : fastest->record.median_seconds;
  // Candidates that are not proven slower than the leader and have rounds left.
  // A single one runs its rounds as well: the record promises its time, which
  // depends on where a process has its memory.
  std::vector<Contender*> round;
  for (Contender& one : list_) {
    const Standing standing = one.standing();
    if (!InRace(one)) {
      const bool enters =
          first_round && leader != nullptr
              ? one.can_win() &&
                    (entrants < kFirstEntrants ||
                     standing.seconds <= kCloseBehind * fastest_first)
              : standing.seconds <= leading.seconds;
      if (!enters || entrants >= kMostEntrants) continue;
      ++entrants;
      round.push_back(&one);
      continue;
    }
    // Requested, but without a result: it failed for no fault of its own.
    const bool known = one.rounds.job_id() == job_id;
    const double behind =
        one.rounds.count() > 1 ? kBehindInMore : kBehindInOneProcess;
    if (known &&
        standing.low > behind * std::max(leading.high, leading.seconds)) {
      continue;
    }
    if (one.requested < kRounds) round.push_back(&one);
  }
  std::stable_sort(round.begin(), round.end(),
                   [](const Contender* a, const Contender* b) {
                     return a->standing().seconds < b->standing().seconds;
                   });
  for (Contender* one : round) ++one->requested;
  return {round.begin(), round.end()};
}

const Contender* Contenders::winner() const {
  std::vector<const Contender*> able;
  std::vector<Standing> standings;
  for (const Contender& one : list_) {
    if (!one.can_win()) continue;
    able.push_back(&one);
    standings.push_back(one.standing());
  }
  return able.empty() ? nullptr : able[database::PickWinner(standings)];
}

double Contenders::best_seconds() const {
  const Contender* best = winner();
  return best == nullptr ? 0 : best->standing().seconds;
}

}  // namespace tilefarm::jobs

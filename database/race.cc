#include "database/race.h"

#include <algorithm>
#include <tuple>

namespace tilefarm::database {

double ClaimOf(const Standing& standing) {
  return standing.confirmed ? standing.seconds
                            : std::max(standing.seconds, standing.high);
}

bool RulesOut(Status status) {
  return status == Status::kWrongResult || status == Status::kRunError ||
         status == Status::kRunTimeout;
}

void Rounds::Add(const std::string& job_id, std::span<const double> seconds) {
  if (job_id.empty() || job_id != job_id_) {
    count_ = 0;
    seconds_.clear();
  }
  job_id_ = job_id;
  ++count_;
  seconds_.insert(seconds_.end(), seconds.begin(), seconds.end());
}

int64_t CountInstructions(std::string_view trace) {
  int64_t count = 0;
  bool in_line = false;
  for (const char c : trace) {
    if (c == '\n') {
      in_line = false;
    } else if (!in_line) {
      in_line = true;
      ++count;
    }
  }
  return count;
}

size_t PickWinner(std::span<const Standing> standings) {
  size_t leader = 0;
  for (size_t i = 1; i < standings.size(); ++i) {
    if (ClaimOf(standings[i]) < ClaimOf(standings[leader])) leader = i;
  }
  const Standing& first = standings[leader];
  if (!first.confirmed) return leader;
  const auto order = [&](size_t i) {
    return std::make_tuple(standings[i].instructions, standings[i].seconds, i);
  };
  const double tied =
      std::min(kTied * first.seconds, std::max(first.high, first.seconds));
  size_t winner = leader;
  for (size_t i = 0; i < standings.size(); ++i) {
    if (standings[i].confirmed && standings[i].seconds <= tied &&
        order(i) < order(winner)) {
      winner = i;
    }
  }
  return winner;
}

}  // namespace tilefarm::database

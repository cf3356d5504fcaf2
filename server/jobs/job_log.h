// The ordered log of a job's proposals and results, one JSON object a line.
// It makes the search replayable. After a restart it says which candidates were
// handed out.
//
//   {"event":"open","target":"...","at":"2026-...","fingerprint":"...",
//    "caches":[L1,L2,L3],"known":{TASK:N},"libraries":["openblas"]}
//   {"event":"propose","task":T,"asked":N,"at":US,
//    "candidates":[{"id","trace","hash","score","sequence"}]}
//   {"event":"report","task":T,"candidates":[ID]}
//   {"event":"correct","task":T,"candidates":[ID]}
//   {"event":"lives","candidates":[{"id","purpose","device","status",
//    "queued":US,...,"stored":US}]}
//   {"event":"end","state":"done"}
//
// US is a time in microseconds since 1970.
#ifndef TILEFARM_SERVER_JOBS_JOB_LOG_H_
#define TILEFARM_SERVER_JOBS_JOB_LOG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/target/target.h"

namespace tilefarm::jobs {

// A candidate as proposed.
struct LoggedProposal {
  std::string candidate_id;
  std::string task_id;
  std::string trace;
  std::string scheduled_hash;
  std::string model_score;
  int64_t sequence = 0;  // within the task
};

// The searches of one target are made. `caches`: those of their target.
// `libraries`: those whose kernels are among their candidates.
std::string OpenLine(absl::Time at, const std::string& fingerprint,
                     const target::Target& target,
                     const std::map<std::string, int64_t>& known,
                     const std::vector<std::string>& libraries = {});
// `asked`: how many the search was asked for. It may have returned fewer, or
// some that a former process had handed out.
std::string ProposeLine(const std::string& task_id, int asked,
                        std::span<const LoggedProposal> proposals,
                        absl::Time at);
std::string ReportLine(const std::string& task_id,
                       std::span<const std::string> candidate_ids);
// The candidates were measured again, and the search learned the new times.
std::string CorrectLine(const std::string& task_id,
                        std::span<const std::string> candidate_ids);
// When a candidate passed its stages (farm::Stages); infinite past: never.
struct LoggedLife {
  std::string candidate_id;
  std::string purpose;  // farm::PurposeName
  std::string device;   // id
  std::string status;
  absl::Time sampled = absl::InfinitePast();  // from the propose line
  absl::Time queued, leased, building, built, running, reported, stored;
};
// What happened to candidates, for people: a search does not depend on it.
std::string LivesLine(std::span<const LoggedLife> lives);
// Told of lives that have ended; does not wait.
using LivesObserver = std::function<void(const std::string& job_id,
                                         std::span<const LoggedLife> lives)>;
std::string EndLine(const std::string& state);

// The content of a target's last "open" line.
struct OpenedTarget {
  std::optional<target::CacheSizes> caches;
  std::optional<std::vector<std::string>> libraries;
};

// What a server needs from the log to continue the job.
struct LogSummary {
  std::optional<absl::Time> first_opened;
  // By target key. Logs of the first releases name no target; their key is "".
  std::map<std::string, OpenedTarget> opened;
  std::vector<LoggedProposal> proposals;  // in order

  // What was opened for the target. `only`: the job has no other target.
  OpenedTarget Opened(const std::string& key, bool only) const;
};
// DataLoss: a line is damaged.
absl::StatusOr<LogSummary> ReadLog(std::span<const std::string> lines);
// In the order in which the results were stored. Logs of earlier releases have
// none. DataLoss: a line is damaged.
absl::StatusOr<std::vector<LoggedLife>> ReadLives(
    std::span<const std::string> lines);

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_JOB_LOG_H_

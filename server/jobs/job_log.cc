#include "server/jobs/job_log.h"

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/json.h"

namespace tilefarm::jobs {
namespace {

using Json = nlohmann::json;

struct Stage {
  const char* name;
  absl::Time LoggedLife::*at;
};
constexpr Stage kStages[] = {
    {"queued", &LoggedLife::queued},     {"leased", &LoggedLife::leased},
    {"building", &LoggedLife::building}, {"built", &LoggedLife::built},
    {"running", &LoggedLife::running},   {"reported", &LoggedLife::reported},
    {"stored", &LoggedLife::stored}};

std::string CandidatesLine(const std::string& event, const std::string& task_id,
                           std::span<const std::string> candidate_ids) {
  return Json{{"event", event},
              {"task", task_id},
              {"candidates", std::vector<std::string>(candidate_ids.begin(),
                                                      candidate_ids.end())}}
      .dump();
}

}  // namespace

std::string OpenLine(absl::Time at, const std::string& fingerprint,
                     const target::Target& target,
                     const std::map<std::string, int64_t>& known,
                     const std::vector<std::string>& libraries) {
  const target::CacheSizes& caches = target.caches;
  return Json{
      {"event", "open"},
      {"target", target.Key()},
      {"at", absl::FormatTime(absl::RFC3339_full, at, absl::UTCTimeZone())},
      {"fingerprint", fingerprint},
      {"caches", {caches.l1_bytes, caches.l2_bytes, caches.l3_bytes}},
      {"known", known},
      {"libraries", libraries}}
      .dump();
}

std::string ProposeLine(const std::string& task_id, int asked,
                        std::span<const LoggedProposal> proposals,
                        absl::Time at) {
  Json candidates = Json::array();
  for (const LoggedProposal& proposal : proposals) {
    candidates.push_back({{"id", proposal.candidate_id},
                          {"trace", proposal.trace},
                          {"hash", proposal.scheduled_hash},
                          {"score", proposal.model_score},
                          {"sequence", proposal.sequence}});
  }
  return Json{{"event", "propose"},
              {"task", task_id},
              {"asked", asked},
              {"at", absl::ToUnixMicros(at)},
              {"candidates", std::move(candidates)}}
      .dump();
}

std::string ReportLine(const std::string& task_id,
                       std::span<const std::string> candidate_ids) {
  return CandidatesLine("report", task_id, candidate_ids);
}

std::string CorrectLine(const std::string& task_id,
                        std::span<const std::string> candidate_ids) {
  return CandidatesLine("correct", task_id, candidate_ids);
}

std::string LivesLine(std::span<const LoggedLife> lives) {
  Json candidates = Json::array();
  for (const LoggedLife& life : lives) {
    Json one = {{"id", life.candidate_id},
                {"purpose", life.purpose},
                {"device", life.device},
                {"status", life.status}};
    for (const auto& [name, stage] : kStages) {
      const absl::Time at = life.*stage;
      if (at != absl::InfinitePast()) one[name] = absl::ToUnixMicros(at);
    }
    candidates.push_back(std::move(one));
  }
  return Json{{"event", "lives"}, {"candidates", std::move(candidates)}}.dump();
}

std::string EndLine(const std::string& state) {
  return Json{{"event", "end"}, {"state", state}}.dump();
}

OpenedTarget LogSummary::Opened(const std::string& key, bool only) const {
  auto found = opened.find(key);
  if (found == opened.end() && only) found = opened.find("");
  return found == opened.end() ? OpenedTarget() : found->second;
}

absl::StatusOr<LogSummary> ReadLog(std::span<const std::string> lines) {
  LogSummary summary;
  for (size_t i = 0; i < lines.size(); ++i) {
    try {
      const Json line = ParseJson(lines[i]);
      const std::string event = line.at("event");
      if (event == "open") {
        OpenedTarget& opened = summary.opened[line.value("target", "")];
        if (line.contains("caches")) {
          const std::array<int64_t, 3> sizes = line.at("caches");
          opened.caches = {sizes[0], sizes[1], sizes[2]};
        }
        if (line.contains("libraries")) {
          opened.libraries =
              line.at("libraries").get<std::vector<std::string>>();
        }
      }
      if (event == "open" && !summary.first_opened.has_value()) {
        absl::Time at;
        std::string error;
        const std::string text = line.at("at");
        if (absl::ParseTime(absl::RFC3339_full, text, &at, &error)) {
          summary.first_opened = at;
        }
      } else if (event == "propose") {
        const std::string task_id = line.at("task");
        for (const Json& one : line.at("candidates")) {
          summary.proposals.push_back({.candidate_id = one.at("id"),
                                       .task_id = task_id,
                                       .trace = one.at("trace"),
                                       .scheduled_hash = one.at("hash"),
                                       .model_score = one.at("score"),
                                       .sequence = one.at("sequence")});
        }
      }
    } catch (const Json::exception& error) {
      return absl::DataLossError(
          absl::StrCat("job log, line ", i + 1, ": ", error.what()));
    }
  }
  return summary;
}

absl::StatusOr<std::vector<LoggedLife>> ReadLives(
    std::span<const std::string> lines) {
  std::vector<LoggedLife> lives;
  std::map<std::string, absl::Time> sampled;
  for (size_t i = 0; i < lines.size(); ++i) {
    try {
      const Json line = ParseJson(lines[i]);
      const std::string event = line.at("event");
      if (event == "propose" && line.contains("at")) {
        for (const Json& one : line.at("candidates")) {
          sampled[one.at("id")] = absl::FromUnixMicros(line.at("at"));
        }
      }
      if (event != "lives") continue;
      for (const Json& one : line.at("candidates")) {
        LoggedLife life{.candidate_id = one.at("id"),
                        .purpose = one.at("purpose"),
                        .device = one.at("device"),
                        .status = one.at("status")};
        for (const auto& [name, stage] : kStages) {
          life.*stage = one.contains(name) ? absl::FromUnixMicros(one.at(name))
                                           : absl::InfinitePast();
        }
        const auto at = sampled.find(life.candidate_id);
        if (at != sampled.end() && life.purpose == "trial") {
          life.sampled = at->second;
        }
        lives.push_back(std::move(life));
      }
    } catch (const Json::exception& error) {
      return absl::DataLossError(
          absl::StrCat("job log, line ", i + 1, ": ", error.what()));
    }
  }
  return lives;
}

}  // namespace tilefarm::jobs

#include "server/demo/recording.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "compiler/target/target.h"
#include "server/jobs/recorded_tasks.h"
#include "server/jobs/result_writer.h"

namespace tilefarm::demo {
namespace {

// Records that are stored at once.
constexpr size_t kGroup = 256;

// Dates what is copied as it was dated.
class CopyingClock : public Clock {
 public:
  absl::Time Now() override { return now_; }
  absl::Duration Monotonic() override { return Clock::Real().Monotonic(); }
  void Set(const std::string& text) {
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, text, &now_, &error)) {
      now_ = Clock::Real().Now();
    }
  }

 private:
  absl::Time now_ = Clock::Real().Now();
};

std::string NameOf(const std::string& device_id) {
  return device_id.substr(0, device_id.rfind('@'));
}

absl::StatusOr<database::JobRow> LastJob(const database::Store& source) {
  TF_ASSIGN_OR_RETURN(const auto rows, source.ListJobs());
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (row->state == "done") return *row;
  }
  return absl::FailedPreconditionError(
      "the recording has no job that is done: tune something into it first");
}

// What the farm needs to know of a device to give it the same work.
absl::StatusOr<farm::DeviceProperties> PropertiesOf(
    const database::Record& record) {
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::ParseKey(record.target));
  farm::DeviceProperties properties;
  properties.target = record.target;
  properties.cpu = target.cpu;
  properties.cores = target.cores;
  properties.features = target.features;
  // target::DeviceModel: "brand=AMD EPYC;cpu=znver5;...".
  for (const absl::string_view part :
       absl::StrSplit(record.device_model, ';')) {
    constexpr absl::string_view kBrand = "brand=";
    if (absl::StartsWith(part, kBrand)) {
      properties.brand = std::string(part.substr(kBrand.size()));
    }
  }
  properties.isolation = record.isolation;
  properties.l1_bytes = target.caches.l1_bytes;
  properties.l2_bytes = target.caches.l2_bytes;
  properties.l3_bytes = target.caches.l3_bytes;
  return properties;
}

void NoteTimes(const std::vector<jobs::LoggedLife>& lives,
               Recording& recording) {
  const auto between = [](absl::Time from, absl::Time to) {
    const bool known = from != absl::InfinitePast() && to >= from;
    return known ? to - from : absl::ZeroDuration();
  };
  for (const jobs::LoggedLife& life : lives) {
    if (life.purpose != "trial") continue;
    const absl::Time built =
        life.built != absl::InfinitePast() ? life.built : life.reported;
    recording.times[life.candidate_id] = {
        .build = between(life.building, built),
        .run = between(life.running, life.reported)};
  }
}

}  // namespace

absl::StatusOr<Recording> ReadRecording(database::Store& source) {
  Recording recording;
  TF_ASSIGN_OR_RETURN(recording.job, LastJob(source));
  TF_ASSIGN_OR_RETURN(recording.spec, jobs::JobFromRow(recording.job));
  TF_ASSIGN_OR_RETURN(const auto lines, source.ReadJobLog(recording.job.id));
  TF_ASSIGN_OR_RETURN(const jobs::LogSummary log, jobs::ReadLog(lines));
  TF_ASSIGN_OR_RETURN(const auto lives, jobs::ReadLives(lines));
  NoteTimes(lives, recording);
  for (const jobs::LoggedProposal& proposal : log.proposals) {
    recording.proposals[proposal.task_id].push_back(proposal);
  }
  absl::Status status = source.ForEachRecord([&](const auto& record) {
    if (record.job_id == recording.job.id) {
      recording.records[record.candidate_id] = record;
    }
    return true;
  });
  TF_RETURN_IF_ERROR(status);
  for (const auto& [id, record] : recording.records) {
    recording.fingerprint = record.fingerprint;
    TF_ASSIGN_OR_RETURN(recording.devices[NameOf(record.device)],
                        PropertiesOf(record));
  }
  for (auto& [name, properties] : recording.devices) {
    for (const auto& [key, opened] : log.opened) {
      if (!opened.libraries.has_value()) continue;
      for (const std::string& library : *opened.libraries) {
        properties.libraries[library] = "as recorded";
      }
    }
  }
  for (const jobs::TaskSpec& task : recording.spec.tasks) {
    const auto blob = source.GetBlob(jobs::BaselineKey(jobs::TaskId(task)));
    if (!blob.ok()) continue;
    TF_ASSIGN_OR_RETURN(recording.baselines[jobs::TaskId(task)],
                        database::RecordFromJson(*blob));
  }
  // A candidate that the log does not have would never be proposed again.
  std::set<std::string> proposed;
  for (const jobs::LoggedProposal& one : log.proposals) {
    proposed.insert(one.candidate_id);
  }
  for (const auto& [id, record] : recording.records) {
    if (proposed.contains(id)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the log of job ", recording.job.id,
                     " lacks candidates: it cannot be replayed"));
  }
  return recording;
}

absl::Status MakeDatabase(database::Store& source, const Recording& recording,
                          const std::string& path) {
  CopyingClock clock;
  TF_ASSIGN_OR_RETURN(
      const auto store,
      database::Store::Open(path, database::Store::Mode::kReadWrite, clock));
  std::vector<database::Record> group;
  absl::Status status;
  const auto flush = [&] {
    if (!group.empty()) status.Update(store->AddRecords(group).status());
    group.clear();
    return status.ok();
  };
  status.Update(source.ForEachRecord([&](const database::Record& record) {
    if (record.job_id == recording.job.id) return true;
    group.push_back(record);
    return group.size() < kGroup || flush();
  }));
  flush();
  TF_RETURN_IF_ERROR(status);
  std::set<std::string> tasks;
  TF_ASSIGN_OR_RETURN(const auto rows, source.ListJobs());
  for (database::JobRow row : rows) {
    const std::string state = row.state, error = row.error,
                      ended = row.ended_at;
    const bool replayed = row.id == recording.job.id;
    row.state = "queued";
    row.error = row.ended_at = "";
    if (replayed) row.created_at = "";
    clock.Set(row.created_at);
    TF_RETURN_IF_ERROR(store->AddJob(row).status());
    if (replayed) continue;
    TF_ASSIGN_OR_RETURN(const auto lines, source.ReadJobLog(row.id));
    TF_RETURN_IF_ERROR(store->AppendJobLog(row.id, lines));
    clock.Set(ended);
    TF_RETURN_IF_ERROR(store->UpdateJob(row.id, state, error));
    TF_ASSIGN_OR_RETURN(const jobs::JobSpec spec, jobs::JobFromRow(row));
    for (const jobs::TaskSpec& task : spec.tasks) {
      tasks.insert(jobs::TaskId(task));
    }
  }
  for (const std::string& task : tasks) {
    for (const std::string& key :
         {jobs::BaselineKey(task), jobs::DefaultKey(task)}) {
      const auto blob = source.GetBlob(key);
      if (blob.ok()) TF_RETURN_IF_ERROR(store->PutBlob(key, *blob));
    }
  }
  TF_ASSIGN_OR_RETURN(const auto devices, source.device_tables().ListDevices());
  return store->device_tables().PutDevices(devices, {});
}

}  // namespace tilefarm::demo

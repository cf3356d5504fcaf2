// A tuning database as the recording of a run: its last job is replayed, and
// the rest is as it was.
#ifndef TILEFARM_SERVER_DEMO_RECORDING_H_
#define TILEFARM_SERVER_DEMO_RECORDING_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "database/store.h"
#include "server/farm/device.h"
#include "server/jobs/job.h"
#include "server/jobs/job_log.h"

namespace tilefarm::demo {

// How long the stages of a candidate took.
struct StageTimes {
  absl::Duration build, run;
};

struct Recording {
  database::JobRow job;  // as stored, ended
  jobs::JobSpec spec;
  std::string fingerprint;  // of the compiler that its records are of
  // In the order in which they were proposed, by task id.
  std::map<std::string, std::vector<jobs::LoggedProposal>> proposals;
  // The job's records with their re-measurements, by candidate id.
  std::map<std::string, database::Record> records;
  // The programs as written, by task id.
  std::map<std::string, database::Record> baselines;
  std::map<std::string, StageTimes> times;  // by candidate id
  // That measured the job, by name.
  std::map<std::string, farm::DeviceProperties> devices;
};

// FailedPrecondition: the database has no job that has ended well, or its log
// is incomplete.
absl::StatusOr<Recording> ReadRecording(database::Store& source);

// Makes the database in the new file `path`: all that the recording has but its
// last job, which is queued there to be run again.
absl::Status MakeDatabase(database::Store& source, const Recording& recording,
                          const std::string& path);

}  // namespace tilefarm::demo

#endif  // TILEFARM_SERVER_DEMO_RECORDING_H_

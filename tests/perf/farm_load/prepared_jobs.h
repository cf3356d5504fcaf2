// A database as a tune-server leaves it that was killed with much to do: jobs
// that run, and candidates in their logs that nobody has measured. The next
// server hands them out as soon as former_hold is over, so that its result path
// can be measured at rates at which no search proposes.
#ifndef TILEFARM_TESTS_PERF_FARM_LOAD_PREPARED_JOBS_H_
#define TILEFARM_TESTS_PERF_FARM_LOAD_PREPARED_JOBS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tilefarm::load {

// Of these cores; any cpu of instruction set level x86-64-v3 measures it.
inline constexpr char kWantedTarget[] = "x86-64:x86-64-v3,cores=1";

// Makes the file. `candidates` in all, shared by `jobs` jobs of as many users,
// each for a matmul of its own size. Programs, traces and hashes are those of a
// random search; where it has proposed kDistinct of them they come again, under
// candidate ids of their own.
absl::Status PrepareJobs(const std::string& database, int jobs,
                         int64_t candidates);

}  // namespace tilefarm::load

#endif  // TILEFARM_TESTS_PERF_FARM_LOAD_PREPARED_JOBS_H_

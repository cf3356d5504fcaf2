// Makes a database like that of a tune-server that was killed with much left to
// do: running jobs, with candidates in their logs that were not measured. The
// next server grants them once former_hold is over, so that its result path can
// be measured at rates at which no search proposes.
#ifndef TILEFARM_TESTS_PERF_FARM_LOAD_PREPARED_JOBS_H_
#define TILEFARM_TESTS_PERF_FARM_LOAD_PREPARED_JOBS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tilefarm::load {

// Has these cores; any cpu of instruction set level x86-64-v3 measures it.
inline constexpr char kWantedTarget[] = "x86-64:x86-64-v3,cores=1";

// Creates the file. `jobs` jobs of as many users share `candidates` candidates,
// each job for a matmul of another size. Programs, traces and hashes are those
// of a random search; after kDistinct proposals they repeat, with different
// candidate ids.
absl::Status PrepareJobs(const std::string& database, int jobs,
                         int64_t candidates);

}  // namespace tilefarm::load

#endif  // TILEFARM_TESTS_PERF_FARM_LOAD_PREPARED_JOBS_H_

// A farm of real processes with short timeouts, for fault tests.
#ifndef TILEFARM_TESTS_FAULT_FAULT_FARM_H_
#define TILEFARM_TESTS_FAULT_FAULT_FARM_H_

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {

class FaultFarm : public FarmFixture {
 protected:
  FaultFarm() {
    for (const char* timeout :
         {"state_interval=200ms", "lease_duration=2s", "former_hold=1s",
          "former_hold_max=10s", "tick=100ms", "commit_retry=200ms",
          "watch_idle_interval=500ms", "keepalive_interval=20s"}) {
      SetServer(timeout);
    }
    for (const char* timeout : {"reconnect_first=50ms", "reconnect_last=200ms",
                                "spool_retry=200ms"}) {
      SetWorker(timeout);
    }
    worker_environment_.push_back("TILEFARM_LOG=debug");
    worker_options_.insert(worker_options_.end(),
                           {"--builders", "1", "--timeline", timeline()});
  }

  // "KEY=DURATION"; a later one overrides.
  void SetServer(const std::string& timeout) {
    server_options_.insert(server_options_.end(), {"--timeout", timeout});
  }
  void SetWorker(const std::string& timeout) {
    worker_options_.insert(worker_options_.end(), {"--timeout", timeout});
  }

  // The measurements of the workers, one line per lease.
  std::string timeline() const { return dir_.File("timeline"); }
  // Maps candidate ids to the number of their measurements.
  std::map<std::string, int> Measured() const {
    std::map<std::string, int> times;
    std::ifstream file(timeline());
    for (std::string line; std::getline(file, line);) {
      const Json one = Json::parse(line, nullptr, false);
      if (one.is_object()) ++times[one["candidate"]];
    }
    return times;
  }
  // The candidates after `mark` in a worker's log.
  static std::set<std::string> Logged(Process& worker,
                                      const std::string& mark) {
    std::set<std::string> candidates;
    std::istringstream lines(worker.errors());
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find("worker: " + mark);
      if (at != std::string::npos) {
        candidates.insert(line.substr(line.rfind(' ') + 1));
      }
    }
    return candidates;
  }
  static int Count(const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) {
      ++count;
    }
    return count;
  }

  // Records by candidate; fails the test if a candidate has two.
  std::map<std::string, Json> Records() {
    std::map<std::string, Json> records;
    for (Json& record : Export()) {
      record.erase("remeasured");
      const std::string id = record["candidate_id"];
      EXPECT_TRUE(records.emplace(id, std::move(record)).second)
          << "twice: " << id;
    }
    return records;
  }
  // Expects that the job is done, with one record per trial.
  void ExpectDone(const std::string& id, int trials, Process& worker) {
    EXPECT_TRUE(WaitForState(id, "done")) << Job(id).dump() << "\n"
                                          << worker.errors() << "\n--- server\n"
                                          << server_->errors();
    EXPECT_EQ(Job(id)["trials_done"], trials);
    EXPECT_EQ(Records().size(), static_cast<size_t>(trials));
  }
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_FAULT_FAULT_FARM_H_

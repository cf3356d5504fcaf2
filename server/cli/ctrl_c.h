// What `tune` does at Ctrl-C (SIGINT) and SIGTERM.
#ifndef TILEFARM_SERVER_CLI_CTRL_C_H_
#define TILEFARM_SERVER_CLI_CTRL_C_H_

#include <functional>
#include <memory>
#include <string>

namespace tilefarm::cli {

// Runs a function in a thread of its own at the first signal. To be made before
// the first call of the server, because gRPC's threads inherit the blocked
// signals. It lasts until the program ends.
class CtrlC {
 public:
  // `first` gets the id of the job, which is empty before SetJob. After it has
  // returned, another signal ends the program at once.
  explicit CtrlC(std::function<void(const std::string& job_id)> first);

  void SetJob(const std::string& job_id);
  // Whether a signal came.
  bool pressed() const;

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

// For jobs of a server: says how to come back to the job, and ends the program.
std::function<void(const std::string& job_id)> LeaveJob(
    const std::string& server);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_CTRL_C_H_

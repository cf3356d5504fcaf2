// A server and workers for one command, `tune run --local`: the same programs
// as of a farm, as children of this process.
//
//   tune ---- tune-server --db DB --listen 127.0.0.1:0
//        `--- rpc-worker --server 127.0.0.1:PORT   one for each kind of device
//
// DB.local/ has their logs, what the workers have not delivered, and the id of
// the job, so that the next run finds a job whose run was killed.
#ifndef TILEFARM_SERVER_CLI_LOCAL_FARM_H_
#define TILEFARM_SERVER_CLI_LOCAL_FARM_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/cli/child.h"
#include "transport/endpoint.h"

namespace tilefarm::cli {

// The values of rpc-worker's --device that together can measure the targets,
// which are as on the command line, each once. InvalidArgument: this machine
// cannot run code of a target.
absl::StatusOr<std::vector<std::string>> LocalDevices(
    const std::vector<std::string>& targets);

// To be made by the main thread, before the first call of a server.
class LocalFarm {
 public:
  // Returns when the server serves; the workers connect later. `died` is called
  // from another thread with a message when a part of the farm ends by itself.
  // InvalidArgument as LocalDevices. Unavailable: a server uses the database
  // now, or the server does not start.
  static absl::StatusOr<std::unique_ptr<LocalFarm>> Start(
      const std::string& db, const std::vector<std::string>& targets,
      std::function<void(const std::string& message)> died);
  // Stops workers and server, in this order: the workers return their leases.
  // Removes DB.local/ if nothing is in it that somebody may need.
  ~LocalFarm();

  const transport::Endpoint& endpoint() const { return endpoint_; }

  // The job of an earlier run that did not end in order; empty: none.
  const std::string& left_job() const { return left_job_; }
  // Notes the job of this run. Unavailable: the file cannot be written.
  absl::Status NoteJob(const std::string& job_id);

 private:
  explicit LocalFarm(std::string folder) : folder_(std::move(folder)) {}
  std::string JobFile() const;

  const std::string folder_;
  transport::Endpoint endpoint_;
  std::string left_job_;
  std::unique_ptr<Child> server_;
  std::vector<std::unique_ptr<Child>> workers_;
};

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_LOCAL_FARM_H_

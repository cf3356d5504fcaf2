#include "server/cli/local_farm.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/target/target.h"
#include "database/file_lock.h"
#include "server/farm/device.h"

namespace tilefarm::cli {
namespace {

namespace fs = std::filesystem;

// Lines of a log that an error message shows.
constexpr int kShownLines = 5;

// This process's, without what would configure the children as parts of another
// farm.
std::vector<std::string> ChildEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("TUNE_") || text.starts_with("RPC_WORKER_")) continue;
    variables.emplace_back(text);
  }
  return variables;
}

// Unavailable: a server uses the database.
absl::Status CheckIsFree(const std::string& db) {
  std::error_code error;
  // The store follows links, too.
  const fs::path real = fs::weakly_canonical(db, error);
  const std::string lock = (error ? fs::path(db) : real).string() + ".lock";
  const auto held =
      database::FileLock::Acquire(lock, database::FileLock::Kind::kShared);
  if (!absl::IsUnavailable(held.status())) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      std::string(held.status().message()),
      "\n(leave out --local to use that tune-server, which --server names, or "
      "name another file with --db)"));
}

// Whether the workers left results that the server did not acknowledge.
bool HasResults(const fs::path& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".result") return true;
  }
  return static_cast<bool>(error);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> LocalDevices(
    const std::vector<std::string>& targets) {
  TF_ASSIGN_OR_RETURN(const target::Target host, target::Parse("host"));
  std::vector<std::string> devices;
  for (const std::string& text : targets) {
    TF_ASSIGN_OR_RETURN(const target::Target target, target::Parse(text));
    std::string device = "cpu";
    if (target.is_simulated()) {
      device = absl::StrCat("sim:", target.cpu);
    } else if (target.is_gpu()) {
      device = target.is_opencl() ? "opencl:0" : "cuda:0";
    } else if (!farm::DeviceFits(host, target)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--local tunes on this machine, which is ", host.Key(),
          " and cannot measure --target ", text,
          "; that needs a tune-server and an rpc-worker of such a device"));
    }
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

absl::StatusOr<std::unique_ptr<LocalFarm>> LocalFarm::Start(
    const std::string& db, const std::vector<std::string>& targets,
    std::function<void(const std::string& message)> died) {
  TF_ASSIGN_OR_RETURN(const std::vector<std::string> devices,
                      LocalDevices(targets));
  TF_RETURN_IF_ERROR(CheckIsFree(db));
  TF_ASSIGN_OR_RETURN(const std::string server, SiblingProgram("tune-server"));
  TF_ASSIGN_OR_RETURN(const std::string worker, SiblingProgram("rpc-worker"));
  const std::string folder = db + ".local";
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", folder, ": ", error.message()));
  }
  const std::vector<std::string> environment = ChildEnvironment();
  std::unique_ptr<LocalFarm> farm(new LocalFarm(folder));
  std::ifstream(farm->JobFile()) >> farm->left_job_;
  const std::string log = folder + "/tune-server.log";
  TF_ASSIGN_OR_RETURN(farm->server_, Child::Start({server, "--db", db,
                                                   "--listen", "127.0.0.1:0"},
                                                  environment, log));
  const auto address = farm->server_->WaitForLine("listening on ");
  if (!address.ok()) {
    return absl::UnavailableError(
        absl::StrCat("tune-server ", std::string(address.status().message()),
                     ":\n", LastLines(log, kShownLines)));
  }
  farm->endpoint_.address = *address;
  const auto watch = [&died](Child& child, const std::string& what,
                             const std::string& log_file) {
    child.OnEnd([died, what, log_file](const std::string& end) {
      died(absl::StrCat(what, " ", end, " (", log_file, "):\n",
                        LastLines(log_file, kShownLines)));
    });
  };
  watch(*farm->server_, "tune-server", log);
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string name =
        i == 0 ? "rpc-worker" : absl::StrCat("rpc-worker-", i + 1);
    std::vector<std::string> command = {worker,
                                        "--server",
                                        *address,
                                        "--device",
                                        devices[i],
                                        "--state-dir",
                                        absl::StrCat(folder, "/", name)};
    // Devices of one server have different names; the first one has its
    // default, the name of the host.
    if (i > 0) {
      command.insert(command.end(), {"--name", absl::StrCat("local-", i + 1)});
    }
    const std::string worker_log = absl::StrCat(folder, "/", name, ".log");
    TF_ASSIGN_OR_RETURN(std::unique_ptr<Child> child,
                        Child::Start(command, environment, worker_log));
    watch(*child, name, worker_log);
    farm->workers_.push_back(std::move(child));
  }
  return farm;
}

std::string LocalFarm::JobFile() const { return folder_ + "/job"; }

absl::Status LocalFarm::NoteJob(const std::string& job_id) {
  std::ofstream file(JobFile());
  file << job_id << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", JobFile()));
}

LocalFarm::~LocalFarm() {
  for (const std::unique_ptr<Child>& worker : workers_) worker->Stop();
  if (server_ != nullptr) server_->Stop();
  std::error_code error;
  fs::remove(JobFile(), error);
  if (!HasResults(folder_)) fs::remove_all(folder_, error);
}

}  // namespace tilefarm::cli

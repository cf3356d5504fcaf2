#include "server/cli/ctrl_c.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "server/cli/exit_codes.h"

namespace tilefarm::cli {

struct CtrlC::Shared {
  Mutex mutex;
  std::string job_id ABSL_GUARDED_BY(mutex);
  bool pressed ABSL_GUARDED_BY(mutex) = false;
};

CtrlC::CtrlC(std::function<void(const std::string& job_id)> first)
    : shared_(std::make_shared<Shared>()) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::thread([shared = shared_, ends, first = std::move(first)] {
    int signal_number = 0;
    sigwait(&ends, &signal_number);
    std::string job_id;
    {
      MutexLock lock(shared->mutex);
      shared->pressed = true;
      job_id = shared->job_id;
    }
    first(job_id);
    pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
    // This thread is the one that takes further signals.
    while (true) pause();
  }).detach();
}

void CtrlC::SetJob(const std::string& job_id) {
  MutexLock lock(shared_->mutex);
  shared_->job_id = job_id;
}

bool CtrlC::pressed() const {
  MutexLock lock(shared_->mutex);
  return shared_->pressed;
}

std::function<void(const std::string& job_id)> LeaveJob(
    const std::string& server) {
  return [server](const std::string& job_id) {
    if (!job_id.empty()) {
      const char* id = job_id.c_str();
      std::fprintf(stderr,
                   "\ntune: %s goes on; come back with: tune watch %s "
                   "--server %s\n      or end it with: tune cancel %s "
                   "--server %s\n",
                   id, id, server.c_str(), id, server.c_str());
    }
    // The main thread waits for the server, and needs no cleanup.
    _exit(kInterrupted);
  };
}

}  // namespace tilefarm::cli

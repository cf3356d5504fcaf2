// Live updates: server-sent events, made once a second for all who watch.
//
//   GET /api/v1/events             "jobs" {jobs: [changed], by_state}
//                                  "devices" {devices: [changed], gone: [name]}
//   GET /api/v1/jobs/{job}/events  "job" {...}, "candidates" {new ones}
//
// What changed is found out once for each topic that has watchers, so that
// fifty open pages cost little more than one. A page opens the stream first and
// reads the state then: whatever changes afterwards is sent.
#ifndef TILEFARM_SERVER_API_FEEDS_H_
#define TILEFARM_SERVER_API_FEEDS_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "server/api/api.h"
#include "server/api/parts.h"
#include "server/http/exchange.h"

namespace tilefarm::api {

// Thread-safe. Owns a thread, which also samples the history of devices.
class Feeds {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(1);

  // What the parts refer to outlives it.
  explicit Feeds(const Parts& parts);
  // Closes all streams.
  ~Feeds();

  // Answers an admitted request whose route is a stream. A stream ends when the
  // caller's credential does.
  void Serve(const Admitted& admitted, http::Exchange& exchange);

 private:
  struct Watcher {
    std::shared_ptr<http::EventStream> stream;
    std::shared_ptr<std::atomic<bool>> gone;
    std::unique_ptr<security::Gate::LiveCall> live;
  };
  using Watchers = std::vector<Watcher>;
  // Texts of what was sent last, by id or name.
  using Sent = std::map<std::string, std::string>;
  struct JobState {
    std::string sent;
    int64_t last = 0;  // id of the last record that was sent
  };

  void Main();
  void Tick();
  // Sends to the watchers of a topic; empty: of the farm.
  void Send(const std::string& topic, std::string_view event, const Json& data);
  void SendFarm();
  void SendJobs();
  void SendDevices();
  void SendJob(const std::string& id, JobState& state);

  const Parts& parts_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Watchers> watchers_ ABSL_GUARDED_BY(mutex_);
  // Used by the thread alone.
  Sent jobs_, devices_;
  std::string by_state_;
  std::map<std::string, JobState> job_states_;
  std::thread thread_;
};

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_FEEDS_H_

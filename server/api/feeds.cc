#include "server/api/feeds.h"

#include <pthread.h>

#include <set>
#include <utility>

#include "server/api/shapes.h"

namespace tilefarm::api {
namespace {

// The topic of the whole farm; others are ids of jobs.
constexpr char kFarm[] = "";
// Jobs that are looked at where the numbers of jobs by state have changed.
constexpr int64_t kLatestJobs = 50;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Feeds::Feeds(const Parts& parts) : parts_(parts), thread_([this] { Main(); }) {}

Feeds::~Feeds() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  MutexLock lock(mutex_);
  for (const auto& [topic, watchers] : watchers_) {
    for (const Watcher& watcher : watchers) watcher.stream->Close();
  }
}

void Feeds::Serve(const Admitted& admitted, http::Exchange& exchange) {
  const auto job = admitted.match.path.find("job");
  const std::string topic =
      job == admitted.match.path.end() ? kFarm : job->second;
  if (topic != kFarm) {
    const auto known = parts_.jobs.Get(topic);
    if (!known.ok()) return exchange.Answer(ErrorResponse(known.status()));
  }
  // The gate may close the stream before it has begun.
  struct Held {
    Mutex mutex;
    std::shared_ptr<http::EventStream> stream ABSL_GUARDED_BY(mutex);
    bool closed ABSL_GUARDED_BY(mutex) = false;
  };
  const auto held = std::make_shared<Held>();
  auto live = parts_.gate.Enter(admitted.caller, security::CallKind::kStream,
                                [held](const absl::Status& /*why*/) {
                                  MutexLock lock(held->mutex);
                                  held->closed = true;
                                  if (held->stream != nullptr)
                                    held->stream->Close();
                                });
  if (!live.ok()) return exchange.Answer(ErrorResponse(live.status()));
  Watcher watcher{.gone = std::make_shared<std::atomic<bool>>(false),
                  .live = *std::move(live)};
  watcher.stream = exchange.Stream([gone = watcher.gone] { *gone = true; });
  if (watcher.stream == nullptr) return;
  {
    MutexLock lock(held->mutex);
    held->stream = watcher.stream;
    if (held->closed) watcher.stream->Close();
  }
  MutexLock lock(mutex_);
  watchers_[topic].push_back(std::move(watcher));
}

void Feeds::Main() {
  pthread_setname_np(pthread_self(), "feeds");
  while (true) {
    Tick();
    MutexLock lock(mutex_);
    if (!stopping_) changed_.WaitFor(mutex_, kPeriod);
    if (stopping_) return;
  }
}

void Feeds::Tick() {
  parts_.history.Sample(parts_.farm.Devices(), Clock::Real().Now());
  std::set<std::string> topics;
  // Leaving the gate takes its lock: outside of ours.
  Watchers left;
  {
    MutexLock lock(mutex_);
    for (auto it = watchers_.begin(); it != watchers_.end();) {
      Watchers stay;
      for (Watcher& watcher : it->second) {
        (*watcher.gone ? left : stay).push_back(std::move(watcher));
      }
      it->second = std::move(stay);
      if (it->second.empty()) {
        it = watchers_.erase(it);
      } else {
        topics.insert(it->first);
        ++it;
      }
    }
  }
  if (topics.erase(kFarm) > 0) {
    SendFarm();
  } else {
    jobs_.clear();
    devices_.clear();
    by_state_.clear();
  }
  std::erase_if(job_states_,
                [&](const auto& one) { return !topics.contains(one.first); });
  for (const std::string& id : topics) {
    const auto [it, is_new] = job_states_.try_emplace(id);
    if (is_new) {
      const auto latest = parts_.store.ListOutcomes(
          {.job_id = id, .reverse = true, .limit = 1});
      if (latest.ok() && !latest->empty()) it->second.last = latest->front().id;
    }
    SendJob(id, it->second);
  }
}

void Feeds::Send(const std::string& topic, std::string_view event,
                 const Json& data) {
  const std::string text = Dump(data);
  MutexLock lock(mutex_);
  const auto found = watchers_.find(topic);
  if (found == watchers_.end()) return;
  for (const Watcher& watcher : found->second) {
    if (!watcher.stream->Send(event, text)) *watcher.gone = true;
  }
}

void Feeds::SendFarm() {
  SendJobs();
  SendDevices();
}

void Feeds::SendJobs() {
  Json by_state = Json::object();
  for (const auto& [name, count] : parts_.jobs.CountByState()) {
    by_state[name] = count;
  }
  const std::string states = Dump(by_state);
  jobs::JobFilter filter;
  if (states == by_state_) {
    // Ended jobs do not change.
    filter.states = {jobs::JobState::kQueued, jobs::JobState::kRunning};
  }
  filter.limit = kLatestJobs;
  const auto all = parts_.jobs.List(filter);
  const auto times = parts_.store.ListJobTimes();
  if (!all.ok() || !times.ok()) return;
  Json changed = Json::array();
  for (const jobs::JobSnapshot& job : *all) {
    const auto dates = times->find(job.id);
    Json row =
        JobRowJson(job, dates == times->end() ? database::Store::JobTimes()
                                              : dates->second);
    std::string text = Dump(row);
    std::string& sent = jobs_[job.id];
    if (sent == text) continue;
    sent = std::move(text);
    changed.push_back(std::move(row));
  }
  if (changed.empty() && states == by_state_) return;
  by_state_ = states;
  Send(kFarm, "jobs",
       {{"jobs", std::move(changed)}, {"by_state", std::move(by_state)}});
}

void Feeds::SendDevices() {
  Json changed = Json::array(), gone = Json::array();
  std::set<std::string> seen;
  for (const farm::DeviceStatus& device : parts_.farm.Devices()) {
    seen.insert(device.name);
    Json row = DeviceJson(device);
    Json compared = row;
    // They change all the time, and say nothing new.
    compared.erase("last_seen");
    compared.erase("busy_seconds");
    std::string text = Dump(compared);
    std::string& sent = devices_[device.name];
    if (sent == text) continue;
    sent = std::move(text);
    changed.push_back(std::move(row));
  }
  std::erase_if(devices_, [&](const auto& one) {
    if (seen.contains(one.first)) return false;
    gone.push_back(one.first);
    return true;
  });
  if (changed.empty() && gone.empty()) return;
  Send(kFarm, "devices",
       {{"devices", std::move(changed)}, {"gone", std::move(gone)}});
}

void Feeds::SendJob(const std::string& id, JobState& state) {
  const auto job = parts_.jobs.Get(id);
  const auto row = parts_.store.GetJob(id);
  if (!job.ok() || !row.ok()) return;
  const Json json = JobJson(*job, {row->created_at, row->ended_at});
  std::string text = Dump(json);
  if (text == state.sent) return;
  state.sent = std::move(text);
  Send(id, "job", json);
  const auto rows =
      parts_.store.ListOutcomes({.job_id = id, .after = state.last});
  if (!rows.ok() || rows->empty()) return;
  state.last = rows->back().id;
  Send(id, "candidates", CandidatesJson(*rows));
}

}  // namespace tilefarm::api

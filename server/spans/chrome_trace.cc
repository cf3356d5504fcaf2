#include "server/spans/chrome_trace.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/spans/life_spans.h"

namespace tilefarm::spans {
namespace {

using jobs::LoggedLife;
using Json = nlohmann::ordered_json;

constexpr int kLivesProcess = 1;

// Lanes of spans that do not overlap within a lane.
class Lanes {
 public:
  int Place(absl::Time from, absl::Time to) {
    for (size_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i] > from) continue;
      ends_[i] = to;
      return static_cast<int>(i);
    }
    ends_.push_back(to);
    return static_cast<int>(ends_.size()) - 1;
  }
  int count() const { return static_cast<int>(ends_.size()); }

 private:
  std::vector<absl::Time> ends_;
};

class Writer {
 public:
  explicit Writer(const std::string& job_id) {
    NameProcess(kLivesProcess, absl::StrCat(job_id, ": candidates"));
  }

  void Add(const LoggedLife& life) {
    AddLife(life);
    if (life.device.empty()) return;
    const auto [it, is_new] = devices_.try_emplace(life.device);
    if (is_new) {
      it->second.process = kLivesProcess + static_cast<int>(devices_.size());
      NameProcess(it->second.process, life.device);
      NameLane(it->second.process, 0, "measures");
    }
    Device& device = it->second;
    const absl::Time built = Known(life.built)     ? life.built
                             : Known(life.running) ? life.running
                                                   : life.reported;
    if (Known(life.building) && Known(built)) {
      const int lane = 1 + device.builds.Place(life.building, built);
      if (lane == device.builds.count()) {
        NameLane(device.process, lane, absl::StrCat("builds ", lane));
      }
      Span("build", life, device.process, lane, life.building, built);
    }
    if (Known(life.running) && Known(life.reported)) {
      Span("run", life, device.process, 0, life.running, life.reported);
    }
  }

  Json Take() {
    return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events_)}};
  }

 private:
  struct Device {
    int process = 0;
    Lanes builds;
  };

  void NameProcess(int process, const std::string& name) {
    events_.push_back({{"ph", "M"},
                       {"name", "process_name"},
                       {"pid", process},
                       {"tid", 0},
                       {"args", {{"name", name}}}});
  }
  void NameLane(int process, int lane, const std::string& name) {
    events_.push_back({{"ph", "M"},
                       {"name", "thread_name"},
                       {"pid", process},
                       {"tid", lane},
                       {"args", {{"name", name}}}});
  }
  static Json Arguments(const LoggedLife& life) {
    return {{"candidate", life.candidate_id},
            {"purpose", life.purpose},
            {"status", life.status},
            {"device", life.device}};
  }
  void Span(const char* name, const LoggedLife& life, int process, int lane,
            absl::Time from, absl::Time to) {
    events_.push_back({{"ph", "X"},
                       {"name", name},
                       {"cat", life.purpose},
                       {"pid", process},
                       {"tid", lane},
                       {"ts", absl::ToUnixMicros(from)},
                       {"dur", absl::ToInt64Microseconds(
                                   std::max(to - from, absl::ZeroDuration()))},
                       {"args", Arguments(life)}});
  }
  // The nested spans of one candidate, which overlap those of others.
  void AddLife(const LoggedLife& life) {
    const int64_t id = ++lives_;
    for (const LifeSpan& span : SpansOf(life)) {
      for (const bool begins : {true, false}) {
        Json event = {{"ph", begins ? "b" : "e"},
                      {"name", span.name},
                      {"cat", life.purpose},
                      {"id", id},
                      {"pid", kLivesProcess},
                      {"tid", 0},
                      {"ts", absl::ToUnixMicros(begins ? span.from : span.to)}};
        if (begins) event["args"] = Arguments(life);
        events_.push_back(std::move(event));
      }
    }
  }

  std::map<std::string, Device> devices_;
  int64_t lives_ = 0;
  Json events_ = Json::array();
};

}  // namespace

nlohmann::ordered_json ChromeTrace(const std::string& job_id,
                                   std::span<const LoggedLife> lives) {
  // Lanes are given in the order in which the spans begin.
  std::vector<const LoggedLife*> order;
  for (const LoggedLife& life : lives) order.push_back(&life);
  std::stable_sort(order.begin(), order.end(),
                   [](const LoggedLife* a, const LoggedLife* b) {
                     return a->building < b->building;
                   });
  Writer writer(job_id);
  for (const LoggedLife* life : order) writer.Add(*life);
  return writer.Take();
}

}  // namespace tilefarm::spans

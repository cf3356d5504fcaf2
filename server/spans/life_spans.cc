#include "server/spans/life_spans.h"

namespace tilefarm::spans {

std::vector<LifeSpan> SpansOf(const jobs::LoggedLife& life) {
  std::vector<LifeSpan> spans;
  const auto add = [&](const char* name, absl::Time from, absl::Time to) {
    if (Known(from) && Known(to) && from <= to) {
      spans.push_back({name, from, to});
    }
  };
  add("candidate",
      Known(life.sampled)  ? life.sampled
      : Known(life.queued) ? life.queued
                           : life.reported,
      life.stored);
  add("sampled", life.sampled, life.queued);
  add("queued", life.queued, life.leased);
  add("leased", life.leased, life.building);
  add("build", life.building, life.built);
  add("waits for cores", life.built, life.running);
  add("run", life.running, life.reported);
  add("store", life.reported, life.stored);
  return spans;
}

}  // namespace tilefarm::spans

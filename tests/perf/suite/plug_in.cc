// Peers of another version of oneDNN than the one linked with suite_bench:
// peers.cc and peers_low_precision.cc compiled with its headers.
#include <type_traits>
#include <utility>

#include "tests/perf/suite/gather_peers.h"

extern "C" __attribute__((visibility("default"))) void AppendSuitePeers(
    const nlohmann::json& spec, const std::vector<float*>& buffers,
    float* output, std::vector<tilefarm::perf::Peer>& to) {
  auto peers =
      spec.contains("dtypes")
          ? tilefarm::perf::MakeLowPrecisionPeers(spec, buffers, output)
          : tilefarm::perf::MakePeers(spec, buffers, output);
  for (auto& peer : peers) to.push_back(std::move(peer));
}

static_assert(std::is_same_v<decltype(AppendSuitePeers),
                             tilefarm::perf::AppendSuitePeersFunction>);

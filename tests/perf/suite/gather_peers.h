// The peers of all libraries at hand.
#ifndef TILEFARM_TESTS_PERF_SUITE_GATHER_PEERS_H_
#define TILEFARM_TESTS_PERF_SUITE_GATHER_PEERS_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/perf/suite/peers.h"

namespace tilefarm::perf {

// A plug-in exports this function under the name "AppendSuitePeers"; both sides
// come from one build. It appends its peers for `spec` to `to`.
using AppendSuitePeersFunction = void(const nlohmann::json& spec,
                                      const std::vector<float*>& buffers,
                                      float* output, std::vector<Peer>& to);

// For the spec of `job` (see suite_bench.cc): of oneDNN as linked, of OpenBLAS,
// of the MKL in the file job["mkl"], and of oneDNN 3 where it was built with
// that. Everyone's result of `output_count` elements is compared with the first
// one's; throws std::runtime_error where they differ, or where a library that
// was asked for can not be loaded.
std::vector<Peer> GatherPeers(const nlohmann::json& job,
                              const std::vector<float*>& buffers, float* output,
                              size_t output_count);

}  // namespace tilefarm::perf

#endif  // TILEFARM_TESTS_PERF_SUITE_GATHER_PEERS_H_

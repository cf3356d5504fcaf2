// Collects the peers of all available libraries.
#ifndef TILEFARM_TESTS_PERF_SUITE_GATHER_PEERS_H_
#define TILEFARM_TESTS_PERF_SUITE_GATHER_PEERS_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/perf/suite/peers.h"

namespace tilefarm::perf {

// A plug-in, from the same build, exports this function as "AppendSuitePeers".
// It appends its peers for `spec` to `to`.
using AppendSuitePeersFunction = void(const nlohmann::json& spec,
                                      const std::vector<float*>& buffers,
                                      float* output, std::vector<Peer>& to);

// The peers for the spec of `job` (see suite_bench.cc): of the linked oneDNN,
// of OpenBLAS, of the MKL in the file job["mkl"], and of oneDNN 3 if it was
// built with that. Compares every result of `output_count` elements with the
// first one; throws std::runtime_error if they differ or if a requested library
// cannot be loaded.
std::vector<Peer> GatherPeers(const nlohmann::json& job,
                              const std::vector<float*>& buffers, float* output,
                              size_t output_count);

}  // namespace tilefarm::perf

#endif  // TILEFARM_TESTS_PERF_SUITE_GATHER_PEERS_H_

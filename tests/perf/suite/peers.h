// Implementations of a suite entry by other libraries.
#ifndef TILEFARM_TESTS_PERF_SUITE_PEERS_H_
#define TILEFARM_TESTS_PERF_SUITE_PEERS_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tilefarm::perf {

struct Peer {
  // The library's name, without spaces, then the function.
  std::string name;
  // True: all operands have the program's layouts. False: constant weights were
  // packed ahead of time.
  bool plain = true;
  std::function<void()> run;
};

// The peers that oneDNN has for `spec` (see programs.py), which read `buffers`
// and write `output`, both in the program's layouts. Leaves out what the
// library does not support. Throws oneDNN's exceptions for other failures.
std::vector<Peer> MakePeers(const nlohmann::json& spec,
                            const std::vector<float*>& buffers, float* output);

// The same for low_precision.py. The buffers have the dtypes in `spec`.
std::vector<Peer> MakeLowPrecisionPeers(const nlohmann::json& spec,
                                        const std::vector<float*>& buffers,
                                        float* output);

// The peers, named `library`, of the BLAS with the dlopen handle `handle`, in
// float32: products, sums as products with ones, transposition, and MKL's
// extensions if it has them.
std::vector<Peer> MakeBlasPeers(const std::string& library, void* handle,
                                const nlohmann::json& spec,
                                const std::vector<float*>& buffers,
                                float* output);

}  // namespace tilefarm::perf

#endif  // TILEFARM_TESTS_PERF_SUITE_PEERS_H_

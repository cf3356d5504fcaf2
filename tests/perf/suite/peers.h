// What other libraries offer for an entry of the suite.
#ifndef TILEFARM_TESTS_PERF_SUITE_PEERS_H_
#define TILEFARM_TESTS_PERF_SUITE_PEERS_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tilefarm::perf {

struct Peer {
  // The library's name, without spaces, then what of it.
  std::string name;
  // Layouts of all operands as the program states them; otherwise constant
  // weights were laid out ahead of time.
  bool plain = true;
  std::function<void()> run;
};

// The peers made of oneDNN for `spec` (see programs.py), reading `buffers` and
// writing `output`, both in the program's layouts. Whatever the library can not
// do is left out. Throws what oneDNN throws where it fails in between.
std::vector<Peer> MakePeers(const nlohmann::json& spec,
                            const std::vector<float*>& buffers, float* output);

// The same for low_precision.py. The buffers hold what `spec` names as dtypes.
std::vector<Peer> MakeLowPrecisionPeers(const nlohmann::json& spec,
                                        const std::vector<float*>& buffers,
                                        float* output);

// The peers made of the BLAS that dlopen gave `handle` for, called `library`,
// in float32: products, sums as products with ones, transposition, and MKL's
// extensions where it has them.
std::vector<Peer> MakeBlasPeers(const std::string& library, void* handle,
                                const nlohmann::json& spec,
                                const std::vector<float*>& buffers,
                                float* output);

}  // namespace tilefarm::perf

#endif  // TILEFARM_TESTS_PERF_SUITE_PEERS_H_

#include "tests/perf/suite/gather_peers.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/perf/suite/elements.h"

namespace tilefarm::perf {
namespace {

using Json = nlohmann::json;

void Append(std::vector<Peer> more, std::vector<Peer>& to) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

// These libraries share symbols (two versions of oneDNN, two BLAS): each must
// use its own, and no other library may use them. Null, and dlerror(), on
// failure.
void* Load(const std::string& file) {
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}

void* LoadOrThrow(const std::string& file) {
  void* handle = Load(file);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  return handle;
}

void AppendPlugIn(const std::string& file, const Json& spec,
                  const std::vector<float*>& buffers, float* output,
                  std::vector<Peer>& to) {
  void* symbol = dlsym(LoadOrThrow(file), "AppendSuitePeers");
  if (symbol == nullptr) throw std::runtime_error(dlerror());
  reinterpret_cast<AppendSuitePeersFunction*>(symbol)(spec, buffers, output,
                                                      to);
}

// Large enough for any order of summing and for Winograd's algorithm; detects
// wrong operands.
constexpr double kTolerance = 1e-2;

void CheckResults(const std::vector<Peer>& peers, const std::string& dtype,
                  void* output, size_t count) {
  std::vector<double> first;
  double largest = 0;
  for (const Peer& peer : peers) {
    std::memset(output, 0, count * ElementBytes(dtype));
    peer.run();
    if (first.empty()) {
      for (size_t i = 0; i < count; ++i) {
        first.push_back(ElementAt(dtype, output, i));
        largest = std::max(largest, std::abs(first.back()));
      }
      continue;
    }
    for (size_t i = 0; i < count; ++i) {
      const double difference =
          std::abs(ElementAt(dtype, output, i) - first[i]);
      // This form also fails for NaN.
      if (!(difference <= kTolerance * largest)) {
        throw std::runtime_error(peer.name + " and " + peers[0].name +
                                 " differ by " + std::to_string(difference) +
                                 " at element " + std::to_string(i));
      }
    }
  }
}

}  // namespace

std::vector<Peer> GatherPeers(const Json& job,
                              const std::vector<float*>& buffers, float* output,
                              size_t output_count) {
  const Json& spec = job["spec"];
  const auto dtypes = spec.value("dtypes", std::vector<std::string>());
  std::vector<Peer> all;
  if (dtypes.empty()) {
    all = MakePeers(spec, buffers, output);
    if (void* handle = Load("libopenblas.so.0")) {
      Append(MakeBlasPeers("openblas", handle, spec, buffers, output), all);
    }
    if (job.contains("mkl")) {
      void* handle = LoadOrThrow(job["mkl"]);
      Append(MakeBlasPeers("mkl", handle, spec, buffers, output), all);
    }
  } else {
    all = MakeLowPrecisionPeers(spec, buffers, output);
  }
  const std::string plug_in = SUITE_ONEDNN3;  // empty if not available
  if (!plug_in.empty()) AppendPlugIn(plug_in, spec, buffers, output, all);
  CheckResults(all, dtypes.empty() ? "float32" : dtypes.back(), output,
               output_count);
  return all;
}

}  // namespace tilefarm::perf

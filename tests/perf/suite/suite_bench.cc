// Times one library function against its peers, interleaved in one process.
//
// The protocol is the same for both sides: in every round, each gets one call
// that is not timed, which brings its code and operands back into the caches,
// and right after it timed calls for two milliseconds, or one call; the result
// is the median of the rounds. Activations are shared, new, touched and random.
// On one core, every call waits until no other process uses the core, for at
// most "patience" seconds in total; "shared" is the share of timings with
// interference.
//
//   suite_bench SPEC.json      prints one JSON object
//
// SPEC: {"library": "x.so", "symbol": "gemm", "shapes": [[...], ...],
//        "spec": {...}, "weights": [1], "rounds": N, "cores": N,
//        "patience": S, "mkl": "libmkl_rt.so"}
//
// With more than one core, each contender first gets 20 milliseconds of rest
// and a millisecond of untimed calls: OpenMP threads spin for some milliseconds
// after a loop, on the cores that the next contender needs.
//
// Parameters in "weights" are packed once, ahead of time. They are float32, or
// have the inner spec's "dtypes".
#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/quiet_core.h"
#include "tests/perf/huge_memory.h"
#include "tests/perf/suite/dot_peaks.h"
#include "tests/perf/suite/elements.h"
#include "tests/perf/suite/gather_peers.h"

namespace tilefarm::perf {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// The number of measurements of the unshared core.
constexpr int kLooks = 400;

double Seconds(const std::function<void()>& run, int repeats) {
  const auto start = Clock::now();
  for (int i = 0; i < repeats; ++i) run();
  return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Aligned as in the runner.
float* Allocate(size_t bytes) {
  return static_cast<float*>(::operator new[](bytes, std::align_val_t(64)));
}

float* Constants(size_t bytes) {
  void* data = AllocateConstants(bytes);
  if (data == nullptr) throw std::bad_alloc();
  return static_cast<float*>(data);
}

// A constant parameter, packed ahead of time by the library.
float* LayOut(void* library, const std::string& name, int parameter,
              const float* source) {
  const auto bytes = reinterpret_cast<size_t (*)(int)>(
      dlsym(library, (name + "_packed_bytes").c_str()));
  const auto pack = reinterpret_cast<int (*)(int, const void*, void*)>(
      dlsym(library, (name + "_pack").c_str()));
  if (bytes == nullptr || pack == nullptr) {
    std::cerr << "the library does not pack\n";
    std::exit(1);
  }
  float* packed = Constants(bytes(parameter));
  if (pack(parameter, source, packed) != 0) {
    std::cerr << "the library's pack function failed\n";
    std::exit(1);
  }
  return packed;
}

#ifdef __AVX512F__
using Vector = float __attribute__((vector_size(64)));
constexpr int kChains = 16;
#else
using Vector = float __attribute__((vector_size(32)));
constexpr int kChains = 12;  // of 16 registers
#endif
constexpr int kLanes = sizeof(Vector) / sizeof(float);

void Keep(Vector& value) { asm volatile("" : "+v"(value)); }

// Independent chains of multiply-adds in registers.
template <int... I>
void MultiplyAdd(int steps, std::integer_sequence<int, I...>) {
  Vector sums[] = {(Vector{} + static_cast<float>(I))...};
  const Vector a = Vector{} + 0.999f, b = Vector{} + 1e-3f;
  for (int i = 0; i < steps; ++i) {
    ((sums[I] = sums[I] * a + b), ...);
    (Keep(sums[I]), ...);
  }
  (Keep(sums[I]), ...);
}

double PeakFlops() {
  constexpr int kSteps = 200000;
  double best = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const double seconds = Seconds(
        [] { MultiplyAdd(kSteps, std::make_integer_sequence<int, kChains>()); },
        1);
    best = std::max(best, 2.0 * kLanes * kChains * kSteps / seconds);
  }
  return best;
}

// Bytes per second that memcpy reads and writes outside of the caches.
double CopyBandwidth() {
  constexpr size_t kBytes = 256 << 20;
  std::vector<char> from(kBytes, 1), into(kBytes, 2);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double s =
        Seconds([&] { std::copy(from.begin(), from.end(), into.begin()); }, 1);
    best = std::max(best, 2.0 * kBytes / s);
  }
  return best;
}

int Main(const char* path) {
  std::ifstream file(path);
  const Json job = Json::parse(file);
  std::vector<float*> buffers;
  std::vector<size_t> counts;
  std::mt19937 random(1);
  const auto dtypes = job["spec"].value("dtypes", std::vector<std::string>());
  std::string dtype = "float32";  // of the last parameter
  const auto weights = job.value("weights", std::vector<size_t>());
  for (const Json& shape : job["shapes"]) {
    size_t count = 1;
    for (const Json& extent : shape) count *= extent.get<size_t>();
    if (!dtypes.empty()) dtype = dtypes[counts.size()];
    counts.push_back(count);
    // The peers get weights with the same alignment.
    const bool constant = std::find(weights.begin(), weights.end(),
                                    buffers.size()) != weights.end();
    const size_t bytes = count * ElementBytes(dtype);
    buffers.push_back(constant ? Constants(bytes) : Allocate(bytes));
    FillRandom(dtype, buffers.back(), count, random);
  }
  float* theirs = Allocate(counts.back() * ElementBytes(dtype));
  FillRandom(dtype, theirs, counts.back(), random);

  std::vector<Peer> all = GatherPeers(job, buffers, theirs, counts.back());
  if (job.contains("library")) {
    void* handle = dlopen(job["library"].get<std::string>().c_str(),
                          RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::cerr << dlerror() << "\n";
      return 1;
    }
    const auto name = job["symbol"].get<std::string>();
    void* symbol =
        dlsym(handle, (weights.empty() ? name : name + "_packed").c_str());
    if (symbol == nullptr) {
      std::cerr << dlerror() << "\n";
      return 1;
    }
    std::vector<float*> b = buffers;
    for (const size_t weight : weights) {
      b[weight] = LayOut(handle, name, static_cast<int>(weight), b[weight]);
    }
    std::function<void()> run;
    const auto call = [symbol](auto... p) {
      return [=] {
        if (reinterpret_cast<int (*)(decltype(p)...)>(symbol)(p...) != 0) {
          std::cerr << "the library's function failed\n";
          std::exit(1);
        }
      };
    };
    switch (buffers.size()) {
      case 2:
        run = call(b[0], b[1]);
        break;
      case 3:
        run = call(b[0], b[1], b[2]);
        break;
      case 4:
        run = call(b[0], b[1], b[2], b[3]);
        break;
      default:
        std::cerr << "2 to 4 parameters\n";
        return 2;
    }
    all.push_back({"ours", true, run});
  }

  const int rounds = job.value("rounds", 25);
  const int cores = job.value("cores", 1);
  std::vector<int> repeats;
  for (const Peer& peer : all) {
    peer.run();
    repeats.push_back(
        std::clamp(static_cast<int>(2e-3 / Seconds(peer.run, 1)), 1, 2000));
  }
  const QuietCore core(cores > 1 ? 0 : LearnAloneContention(kLooks));
  double patience = job.value("patience", 10.0);
  int shared = 0;
  std::vector<std::vector<double>> times(all.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (cores > 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        for (int k = 0; k < repeats[i] / 2; ++k) all[i].run();
      }
      for (bool again = true; again;) {
        const auto start = Clock::now();
        const bool quiet = core.Await(patience);
        all[i].run();  // brings its code and operands into the caches
        const double seconds = Seconds(all[i].run, repeats[i]);
        const bool alone = quiet && core.IsQuiet();
        // Repeat this while there is patience left.
        again = quiet && !alone && patience > 0;
        if (again || !quiet) {
          patience -=
              std::chrono::duration<double>(Clock::now() - start).count();
        }
        if (again) continue;
        shared += !alone;
        times[i].push_back(seconds);
      }
    }
  }
  Json result;
  result["shared"] =
      shared / static_cast<double>(static_cast<size_t>(rounds) * all.size());
  result["peers"] = Json::array();
  for (size_t i = 0; i < all.size(); ++i) {
    const double median = Median(times[i]);
    if (all[i].name == "ours") {
      result["seconds"] = median;
    } else {
      result["peers"].push_back({{"name", all[i].name},
                                 {"plain", all[i].plain},
                                 {"seconds", median}});
    }
  }
  if (job.contains("library") && all.size() > 1) {
    double worst = 0, largest = 0;
    all[0].run();
    for (size_t i = 0; i < counts.back(); ++i) {
      const double value = ElementAt(dtype, theirs, i);
      worst = std::max(worst,
                       std::abs(ElementAt(dtype, buffers.back(), i) - value));
      largest = std::max(largest, std::abs(value));
    }
    result["largest_difference"] = worst;
    result["largest_value"] = largest;
  }
  if (job.value("machine", false)) {
    result["peak_flops"] = PeakFlops();
    result["dot_peaks"] = DotPeaks();
    result["copy_bandwidth"] = CopyBandwidth();
  }
  std::cout << result.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace tilefarm::perf

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: suite_bench SPEC.json\n";
    return 2;
  }
  return tilefarm::perf::Main(argv[1]);
}

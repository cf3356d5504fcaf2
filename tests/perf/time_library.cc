// Times one function of a shared object as a user's program would call it, in
// a process of its own: memory from the allocator, touched and filled with
// random values, the caches warm from the run before.
//
//   time_library LIB.so SYMBOL [--packed] [--samples N] [--alone C]
//                [--cores N] TYPE:COUNT...
//
// TYPE:COUNT is a parameter, "float32:1048576". Prints one JSON object:
// {"seconds": [...], "median_seconds": S, "shared": N, "alone_contention": C,
//  "canary_seconds": S}.
//
// The protocol is the runner's: the last N cores (1), a first run, a
// millisecond of warm-up, samples of a millisecond or one run, taken again
// where the process was switched out, and waiting until nothing else uses the
// core. "shared" of the samples were taken although something did, since
// waiting took too long. How the core is alone is the least of C and what this
// process sees itself: callers hand on what former processes printed.
#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/quiet_core.h"
#include "base/statistics.h"

namespace tilefarm::perf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSampleSeconds = 1e-3;
constexpr size_t kMostParameters = 16;
// To learn how the core is alone, and of waiting for that, in all.
constexpr int kLooks = 200;
constexpr double kPatienceSeconds = 15;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <size_t... I>
int CallWith(void* function, void* const* args, std::index_sequence<I...>) {
  using Function = int (*)(decltype(static_cast<void>(I), (void*)nullptr)...);
  return reinterpret_cast<Function>(function)(args[I]...);
}

struct Library {
  void* handle;
  std::string symbol;
  void* Find(const std::string& suffix) const {
    void* found = dlsym(handle, (symbol + suffix).c_str());
    if (found == nullptr) {
      std::cerr << dlerror() << "\n";
      std::exit(1);
    }
    return found;
  }
};

// Random in [-1, 1]; any bytes for integers.
void* MakeBuffer(const std::string& type, size_t count, std::mt19937& random) {
  const size_t element = type == "float64" || type == "int64"   ? 8
                         : type == "float32" || type == "int32" ? 4
                         : type == "int8" || type == "uint8"    ? 1
                                                                : 2;
  void* data = nullptr;
  if (posix_memalign(&data, 64, std::max<size_t>(count * element, 64)) != 0) {
    std::cerr << "out of memory\n";
    std::exit(1);
  }
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = random();
    const float value = static_cast<float>(bits >> 8) * 0x1p-23f - 1;
    if (type == "float32") {
      static_cast<float*>(data)[i] = value;
    } else if (type == "float64") {
      static_cast<double*>(data)[i] = value;
    } else if (type == "bfloat16" || type == "float16") {
      // Between 0.25 and 2 in either format, of either sign.
      const uint16_t one = type == "bfloat16" ? 0x3f80 : 0x3c00;
      static_cast<uint16_t*>(data)[i] =
          static_cast<uint16_t>((one ^ (bits & 0x7f)) | (bits & 0x8000));
    } else {
      std::memcpy(static_cast<char*>(data) + i * element, &bits,
                  std::min<size_t>(element, 4));
    }
  }
  return data;
}

long InvoluntarySwitches() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

// As the runner does: the last `count` cores.
void UseLastCores(int count) {
  cpu_set_t allowed, last;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_ZERO(&last);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && CPU_COUNT(&last) < count; --cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &last);
  }
  sched_setaffinity(0, sizeof last, &last);
}

// As the runner's: a fixed chain of multiplications tells the clock.
double Canary() {
  volatile uint64_t sink;
  uint64_t x = 88172645463325252;
  double best = 1;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto start = Clock::now();
    for (int i = 0; i < 10000; ++i) x = x * 6364136223846793005 + 1;
    sink = x;
    best = std::min(best, Since(start));
  }
  static_cast<void>(sink);
  return best;
}

struct Samples {
  std::vector<double> seconds;
  double alone_contention = 0;
  int shared = 0;
};

Samples Measure(void* function, void* const* args, int count,
                double alone_contention) {
  const auto run = [&] {
    const auto start = Clock::now();
    if (CallWith(function, args, std::make_index_sequence<kMostParameters>())) {
      std::cerr << "the function failed\n";
      std::exit(1);
    }
    return Since(start);
  };
  const QuietCore core(alone_contention);
  double patience = kPatienceSeconds;
  double best = run();
  double spent = 0;
  while (spent < kSampleSeconds) {
    const double seconds = run();
    best = std::min(best, seconds);
    spent += seconds;
  }
  const int iterations = std::clamp(
      static_cast<int>(kSampleSeconds / std::max(best, 1e-9)), 1, 1 << 20);
  Samples samples;
  samples.alone_contention = alone_contention;
  for (int retakes = 0; static_cast<int>(samples.seconds.size()) < count;) {
    bool quiet = core.IsQuiet();
    if (!quiet && patience > 0) {
      const auto start = Clock::now();
      quiet = core.Await(patience);
      patience -= Since(start);
      run();  // into the caches again
    }
    const long switches = InvoluntarySwitches();
    const auto start = Clock::now();
    for (int i = 0; i < iterations; ++i) {
      CallWith(function, args, std::make_index_sequence<kMostParameters>());
    }
    const double mean = Since(start) / iterations;
    const bool alone = quiet && core.IsQuiet();
    if ((InvoluntarySwitches() != switches || (quiet && !alone)) &&
        retakes++ < 4 * count) {
      continue;
    }
    samples.seconds.push_back(mean);
    samples.shared += !alone;
  }
  return samples;
}

int Main(const std::vector<std::string>& words) {
  bool packed = false;
  int samples = 25;
  double alone = 0;
  int cores = 1;
  std::vector<std::string> names;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--packed") {
      packed = true;
    } else if (words[i] == "--samples" && i + 1 < words.size()) {
      samples = std::max(1, std::atoi(words[++i].c_str()));
    } else if (words[i] == "--alone" && i + 1 < words.size()) {
      alone = std::atof(words[++i].c_str());
    } else if (words[i] == "--cores" && i + 1 < words.size()) {
      cores = std::max(1, std::atoi(words[++i].c_str()));
    } else {
      names.push_back(words[i]);
    }
  }
  if (names.size() < 3 || names.size() > kMostParameters) {
    std::cerr << "usage: time_library LIB.so SYMBOL [--packed] [--samples N] "
                 "[--alone C] [--cores N] TYPE:COUNT...\n";
    return 2;
  }
  UseLastCores(cores);
  setpriority(PRIO_PROCESS, 0, -10);
  void* handle = dlopen(names[0].c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::cerr << dlerror() << "\n";
    return 1;
  }
  const Library library{handle, names[1]};
  std::mt19937 random(std::random_device{}());
  void* args[kMostParameters] = {};
  for (size_t i = 2; i < names.size(); ++i) {
    const size_t colon = names[i].find(':');
    if (colon == std::string::npos) {
      std::cerr << names[i] << " is not TYPE:COUNT\n";
      return 2;
    }
    args[i - 2] =
        MakeBuffer(names[i].substr(0, colon),
                   std::strtoull(&names[i][colon + 1], nullptr, 10), random);
  }
  if (packed) {
    const auto bytes =
        reinterpret_cast<int64_t (*)(int)>(library.Find("_packed_bytes"));
    const auto pack = reinterpret_cast<int (*)(int, const void*, void*)>(
        library.Find("_pack"));
    for (size_t i = 0; i + 2 < names.size(); ++i) {
      const int64_t size = bytes(static_cast<int>(i));
      if (size <= 0) continue;
      void* into = nullptr;
      if (posix_memalign(&into, 64, static_cast<size_t>(size)) != 0) return 1;
      pack(static_cast<int>(i), args[i], into);
      args[i] = into;
    }
  }
  // With several cores, those of the threads count as much, unseen.
  const double learned = cores > 1 ? 0 : LearnAloneContention(kLooks);
  const double alone_contention =
      alone > 0 ? std::min(alone, learned) : learned;
  const Samples measured = Measure(library.Find(packed ? "_packed" : ""), args,
                                   samples, alone_contention);
  std::cout << nlohmann::json{{"seconds", measured.seconds},
                              {"median_seconds",
                               MedianOf(measured.seconds).median},
                              {"shared", measured.shared},
                              {"alone_contention", measured.alone_contention},
                              {"canary_seconds", Canary()}}
                   .dump()
            << "\n";
  return 0;
}

}  // namespace
}  // namespace tilefarm::perf

int main(int argc, char** argv) {
  return tilefarm::perf::Main({argv + 1, argv + argc});
}

// Times one function of a shared object as a user's program would call it, in a
// process of its own: memory from the allocator, touched and filled with random
// values; caches warm from the previous run or, if the parameters exceed the
// last-level cache, completely cold.
//
//   time_library --symbol S (--library LIB.so | --packed LIB.so)...
//                [--samples N] [--alone C] [--cores N] TYPE:COUNT...
//
// TYPE:COUNT is a parameter, "float32:1048576". Several libraries alternate,
// sample by sample, on the same buffers, so that the machine's state and the
// buffers' location are the same for all; before each sample, the caches are
// warmed again. --packed calls S_packed, on constants packed ahead of time, in
// huge pages as their header advises.
// Prints one JSON object:
// {"libraries": [{"seconds": [...], "median_seconds": S, "shared": N}...],
//  "alone_contention": C, "canary_seconds": S}.
//
// The protocol is the runner's: the last N cores (default 1), a first run, a
// millisecond of warm-up, then samples of a millisecond or one run, or of one
// run on flushed parameters if these exceed the last-level cache. Samples are
// repeated if the process was switched out, and wait until no other process
// uses the core. "shared" counts samples with interference, taken when the
// waiting time was used up. The contention of the unshared core is the smaller
// of C and the own measurement: callers pass on the value that earlier
// processes printed.
#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/cache_flush.h"
#include "base/quiet_core.h"
#include "base/statistics.h"
#include "compiler/target/host.h"
#include "tests/perf/huge_memory.h"

namespace tilefarm::perf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSampleSeconds = 1e-3;
// Untimed runs before a sample that does not follow one of the same library: if
// two working sets do not fit into the last-level cache together, one run
// leaves a part of the other set there.
constexpr double kIntoCachesSeconds = 5e-3;
constexpr size_t kMostParameters = 16;
// The number of measurements of the unshared core, and the total waiting time.
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

size_t ElementBytes(const std::string& type) {
  return type == "float64" || type == "int64"   ? 8
         : type == "float32" || type == "int32" ? 4
         : type == "int8" || type == "uint8"    ? 1
                                                : 2;
}

// Random in [-1, 1]; any bytes for integers.
void* MakeBuffer(const std::string& type, size_t count, std::mt19937& random) {
  const size_t element = ElementBytes(type);
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
      // Between 0.25 and 2 in either format, with either sign.
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

// As in the runner: the last `count` cores.
void UseLastCores(int count) {
  cpu_set_t allowed, last;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_ZERO(&last);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && CPU_COUNT(&last) < count; --cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &last);
  }
  sched_setaffinity(0, sizeof last, &last);
}

// As in the runner: a fixed chain of multiplications shows the clock.
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

using Arguments = std::array<void*, kMostParameters>;
using Sizes = std::array<size_t, kMostParameters>;

// One library's function and its samples.
struct Contender {
  void* handle = nullptr;
  void* function = nullptr;
  Arguments args = {};
  Sizes bytes = {};
  int iterations = 1;  // per sample
  bool flushes = false;
  std::vector<double> seconds;
  int shared = 0;

  double Run() const {
    const auto start = Clock::now();
    if (CallWith(function, args.data(),
                 std::make_index_sequence<kMostParameters>())) {
      std::cerr << "the function failed\n";
      std::exit(1);
    }
    return Since(start);
  }
  void Flush() const {
    for (size_t i = 0; i < args.size(); ++i) {
      FlushFromCaches(args[i], bytes[i]);
    }
  }
  // Returns the minimum time of a run.
  double RunFor(double seconds) const {
    double best = Run();
    for (double spent = best; spent < seconds;) {
      const double one = Run();
      best = std::min(best, one);
      spent += one;
    }
    return best;
  }
};

void* Find(const Contender& contender, const std::string& symbol) {
  void* found = dlsym(contender.handle, symbol.c_str());
  if (found == nullptr) {
    std::cerr << dlerror() << "\n";
    std::exit(1);
  }
  return found;
}

// With S_packed: the layout-free parameters are packed by S_pack.
Contender Load(const std::string& path, const std::string& symbol, bool packed,
               const Arguments& args, const Sizes& bytes, int parameters) {
  Contender contender;
  contender.args = args;
  contender.bytes = bytes;
  contender.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (contender.handle == nullptr) {
    std::cerr << dlerror() << "\n";
    std::exit(1);
  }
  contender.function = Find(contender, symbol + (packed ? "_packed" : ""));
  if (!packed) return contender;
  const auto bytes_of = reinterpret_cast<int64_t (*)(int)>(
      Find(contender, symbol + "_packed_bytes"));
  const auto pack = reinterpret_cast<int (*)(int, const void*, void*)>(
      Find(contender, symbol + "_pack"));
  for (int i = 0; i < parameters; ++i) {
    const int64_t size = bytes_of(i);
    if (size <= 0) continue;
    void* into = AllocateConstants(static_cast<size_t>(size));
    if (into == nullptr || pack(i, args[static_cast<size_t>(i)], into) != 0) {
      std::cerr << "cannot pack parameter " << i << "\n";
      std::exit(1);
    }
    contender.args[static_cast<size_t>(i)] = into;
    contender.bytes[static_cast<size_t>(i)] = static_cast<size_t>(size);
  }
  return contender;
}

void WarmUp(Contender& contender) {
  const double best = contender.RunFor(kSampleSeconds);
  const size_t bytes = std::accumulate(contender.bytes.begin(),
                                       contender.bytes.end(), size_t{0});
  contender.flushes =
      bytes > static_cast<size_t>(target::HostCaches().l3_bytes);
  if (contender.flushes) return;
  contender.iterations = std::clamp(
      static_cast<int>(kSampleSeconds / std::max(best, 1e-9)), 1, 1 << 20);
}

// Takes one more sample, once the core is unshared or `patience` has run out;
// repeats it up to `*retakes` times if another process ran meanwhile.
void TakeSample(Contender& contender, const QuietCore& core, bool warm,
                double* patience, int* retakes) {
  for (;;) {
    bool quiet = core.IsQuiet();
    if (!quiet && *patience > 0) {
      const auto start = Clock::now();
      quiet = core.Await(*patience);
      *patience -= Since(start);
      warm = false;
    }
    if (!warm && !contender.flushes) contender.RunFor(kIntoCachesSeconds);
    warm = true;
    if (contender.flushes) contender.Flush();
    const long switches = InvoluntarySwitches();
    const auto start = Clock::now();
    for (int i = 0; i < contender.iterations; ++i) {
      CallWith(contender.function, contender.args.data(),
               std::make_index_sequence<kMostParameters>());
    }
    const double mean = Since(start) / contender.iterations;
    const bool alone = quiet && core.IsQuiet();
    if ((InvoluntarySwitches() != switches || (quiet && !alone)) &&
        *retakes > 0) {
      --*retakes;
      continue;
    }
    contender.seconds.push_back(mean);
    contender.shared += !alone;
    return;
  }
}

struct Options {
  std::vector<std::string> libraries;
  std::vector<bool> packed;  // one per library
  std::string symbol;
  std::vector<std::string> parameters;
  int samples = 25;
  double alone = 0;
  int cores = 1;
};

int Run(const Options& options) {
  UseLastCores(options.cores);
  setpriority(PRIO_PROCESS, 0, -10);
  std::mt19937 random(std::random_device{}());
  Arguments args = {};
  Sizes bytes = {};
  for (size_t i = 0; i < options.parameters.size(); ++i) {
    const std::string& parameter = options.parameters[i];
    const size_t colon = parameter.find(':');
    if (colon == std::string::npos) {
      std::cerr << parameter << " is not TYPE:COUNT\n";
      return 2;
    }
    const std::string type = parameter.substr(0, colon);
    const size_t count = std::strtoull(&parameter[colon + 1], nullptr, 10);
    args[i] = MakeBuffer(type, count, random);
    bytes[i] = count * ElementBytes(type);
  }
  std::vector<Contender> contenders;
  for (size_t i = 0; i < options.libraries.size(); ++i) {
    contenders.push_back(Load(options.libraries[i], options.symbol,
                              options.packed[i], args, bytes,
                              static_cast<int>(options.parameters.size())));
  }
  // With several cores, interference on the threads' cores matters as much but
  // is not visible here.
  const double learned = options.cores > 1 ? 0 : LearnAloneContention(kLooks);
  const double alone =
      options.alone > 0 ? std::min(options.alone, learned) : learned;
  const QuietCore core(alone);
  for (Contender& contender : contenders) WarmUp(contender);
  double patience = kPatienceSeconds;
  int retakes = 4 * options.samples * static_cast<int>(contenders.size());
  for (int sample = 0; sample < options.samples; ++sample) {
    for (Contender& contender : contenders) {
      TakeSample(contender, core, contenders.size() == 1, &patience, &retakes);
    }
  }
  nlohmann::json answer = {{"libraries", nlohmann::json::array()},
                           {"alone_contention", alone},
                           {"canary_seconds", Canary()}};
  for (const Contender& contender : contenders) {
    answer["libraries"].push_back(
        {{"seconds", contender.seconds},
         {"median_seconds", MedianOf(contender.seconds).median},
         {"shared", contender.shared}});
  }
  std::cout << answer.dump() << "\n";
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("times a function of shared objects");
  Options options;
  const auto add = [&](bool packed) {
    return [&options, packed](const std::string& path) {
      options.libraries.push_back(path);
      options.packed.push_back(packed);
    };
  };
  app.add_option_function<std::string>("--library", add(false),
                                       "a shared object: calls SYMBOL")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->trigger_on_parse();
  app.add_option_function<std::string>("--packed", add(true),
                                       "a shared object: calls SYMBOL_packed")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->trigger_on_parse();
  app.add_option("--symbol", options.symbol, "the function")->required();
  app.add_option("--samples", options.samples, "of each")
      ->check(CLI::PositiveNumber);
  app.add_option("--alone", options.alone, "contention of a core alone");
  app.add_option("--cores", options.cores, "the last N")
      ->check(CLI::PositiveNumber);
  app.add_option("parameters", options.parameters, "TYPE:COUNT")
      ->required()
      ->expected(1, static_cast<int>(kMostParameters));
  CLI11_PARSE(app, argc, argv);
  if (options.libraries.empty()) {
    std::cerr << "no --library and no --packed one\n";
    return 2;
  }
  return Run(options);
}

}  // namespace
}  // namespace tilefarm::perf

int main(int argc, char** argv) { return tilefarm::perf::Main(argc, argv); }

#include "compiler/driver/machine_peaks.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/run_function.h"
#include "compiler/ir/parser.h"

namespace tilefarm::driver {
namespace {

// Of each program; the best of several interleaved rounds counts, since other
// work on the machine only slows down.
constexpr absl::Duration kBudget = absl::Milliseconds(30);
constexpr int kRounds = 5;
// Terms of one run of the register tile, whose columns of B stay in L1.
constexpr int kTerms = 128;
constexpr int kTiles = 64;
constexpr int kChain = 4096;

// C[tile] = A[tile] * B in register tiles of ROWS x COLUMNS.
constexpr char kProducts[] = R"(
@T.prim_func
def products(A: T.Buffer((ALL, TERMS), "float32"), B: T.Buffer((TERMS, COLUMNS), "float32"), C: T.Buffer((ALL, COLUMNS), "float32")):
    for p in T.parallel(CHUNKS):
        for t in range(TILES):
            for i, j in T.grid(ROWS, 1):
                for v in T.vectorized(COLUMNS):
                    with T.block("zero"):
                        vi = T.axis.spatial(ALL, p * CHUNK + t * ROWS + i)
                        vj = T.axis.spatial(COLUMNS, v)
                        C[vi, vj] = T.float32(0)
            for k in range(TERMS):
                for i in T.unroll(ROWS):
                    for v in T.vectorized(COLUMNS):
                        with T.block("sum"):
                            vi = T.axis.spatial(ALL, p * CHUNK + t * ROWS + i)
                            vj = T.axis.spatial(COLUMNS, v)
                            vk = T.axis.reduce(TERMS, k)
                            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

// One sum of dependent steps: OF is A[vk] * B[vk], or A[vk].
constexpr char kDependent[] = R"(
@T.prim_func
def chain(A: T.Buffer((LENGTH,), "TYPE"), B: T.Buffer((LENGTH,), "TYPE"), S: T.Buffer((1,), "TYPE")):
    for k in range(LENGTH):
        with T.block("S"):
            vs = T.axis.spatial(1, 0)
            vk = T.axis.reduce(LENGTH, k)
            with T.init():
                S[vs] = T.TYPE(0)
            S[vs] = S[vs] + OF
)";

// Sums of the columns of A, in ROWS vectors at once, so that only loads count.
constexpr char kColumnSums[] = R"(
@T.prim_func
def sums(A: T.Buffer((CHUNKS, LENGTH, ROWS, LANES), "float32"), S: T.Buffer((CHUNKS, ROWS, LANES), "float32")):
    for p in T.parallel(CHUNKS):
        for i in T.unroll(ROWS):
            for v in T.vectorized(LANES):
                with T.block("zero"):
                    vp, vi, vj = T.axis.remap("SSS", [p, i, v])
                    S[vp, vi, vj] = T.float32(0)
        for k in range(LENGTH):
            for i in T.unroll(ROWS):
                for v in T.vectorized(LANES):
                    with T.block("sum"):
                        vp, vi, vj, vk = T.axis.remap("SSSR", [p, i, v, k])
                        S[vp, vi, vj] = S[vp, vi, vj] + A[vp, vk, vi, vj]
)";

using Words = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<RunnableFunction> Make(const char* text, const Words& words,
                                      const target::Target& target) {
  TF_ASSIGN_OR_RETURN(const ir::PrimFuncPtr function,
                      ir::ParseFunction(absl::StrReplaceAll(text, words)));
  return RunnableFunction::Make(*function, target);
}

Words ProductWords(const target::Target& target, int chunks) {
  const int lanes = target.vector_lanes(4);
  // Two vectors of columns; as many rows as leave registers for the operands.
  const int rows = std::max((target.vector_registers - 4) / 2, 2);
  return {{"TERMS", absl::StrCat(kTerms)},
          {"COLUMNS", absl::StrCat(2 * lanes)},
          {"TILES", absl::StrCat(kTiles)},
          {"ROWS", absl::StrCat(rows)},
          {"CHUNKS", absl::StrCat(chunks)},
          {"CHUNK", absl::StrCat(rows * kTiles)},
          {"ALL", absl::StrCat(rows * kTiles * chunks)}};
}

double ProductFlops(const target::Target& target, int chunks) {
  const int rows = std::max((target.vector_registers - 4) / 2, 2);
  return 2.0 * kTerms * 2 * target.vector_lanes(4) * rows * kTiles * chunks;
}

// Sums over `bytes`, an equal part for each of `chunks` threads.
struct ColumnSums {
  Words words;
  double bytes = 0;
};
ColumnSums SumsOver(const target::Target& target, int64_t bytes, int chunks) {
  const int lanes = target.vector_lanes(4);
  const int rows = std::min(target.vector_registers / 2, 8);
  const int64_t length =
      std::max<int64_t>(bytes / chunks / (4 * lanes * rows), 16);
  return {{{"LENGTH", absl::StrCat(length)},
           {"ROWS", absl::StrCat(rows)},
           {"LANES", absl::StrCat(lanes)},
           {"CHUNKS", absl::StrCat(chunks)}},
          static_cast<double>(length) * 4 * lanes * rows * chunks};
}

struct Measured {
  RunnableFunction function;
  double seconds = 0;  // best so far
};

double Number(const nlohmann::json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number() ? at->get<double>() : 0;
}

struct Field {
  const char* name;
  double MachinePeaks::*value;
};
constexpr Field kFields[] = {
    {"clock_hz", &MachinePeaks::clock_hz},
    {"float32_flops", &MachinePeaks::float32_flops},
    {"all_float32_flops", &MachinePeaks::all_float32_flops},
    {"latency_seconds", &MachinePeaks::latency_seconds},
    {"bytes_from_l1", &MachinePeaks::bytes_from_l1},
    {"bytes_from_l2", &MachinePeaks::bytes_from_l2},
    {"bytes_from_l3", &MachinePeaks::bytes_from_l3},
    {"bytes_from_memory", &MachinePeaks::bytes_from_memory},
    {"all_bytes_from_memory", &MachinePeaks::all_bytes_from_memory}};

}  // namespace

absl::StatusOr<MachinePeaks> MeasurePeaks(const target::Target& target,
                                          Clock& clock) {
  if (target.is_gpu()) {
    return absl::InvalidArgumentError("peaks of GPUs are not measured");
  }
  target::Target one_core = target;
  one_core.cores = 1;
  const int cores = std::max(target.cores, 1);
  const target::CacheSizes& caches = target.caches;
  constexpr int64_t kMostBytes = int64_t{512} << 20;
  const ColumnSums l1 = SumsOver(target, caches.l1_bytes / 2, 1);
  const ColumnSums l2 =
      SumsOver(target, std::max(2 * caches.l1_bytes, caches.l2_bytes / 2), 1);
  const ColumnSums l3 =
      SumsOver(target, std::max(2 * caches.l2_bytes, caches.l3_bytes / 2), 1);
  const int64_t beyond = std::min(4 * caches.l3_bytes, kMostBytes);
  const ColumnSums memory = SumsOver(target, beyond, 1);
  const ColumnSums all_memory = SumsOver(target, beyond, cores);
  const Words chain = {{"LENGTH", absl::StrCat(kChain)}};
  const auto with = [&](std::string type, std::string of) {
    Words words = chain;
    words.emplace_back("TYPE", std::move(type));
    words.emplace_back("OF", std::move(of));
    return words;
  };

  std::vector<Measured> programs;
  const auto add = [&](const char* text, const Words& words,
                       const target::Target& on) -> absl::Status {
    TF_ASSIGN_OR_RETURN(RunnableFunction function, Make(text, words, on));
    programs.push_back({std::move(function)});
    return absl::OkStatus();
  };
  enum {
    kPeak,
    kAllPeak,
    kLatency,
    kClock,
    kL1,
    kL2,
    kL3,
    kMemory,
    kAllMemory
  };
  TF_RETURN_IF_ERROR(add(kProducts, ProductWords(target, 1), one_core));
  TF_RETURN_IF_ERROR(add(kProducts, ProductWords(target, cores), target));
  TF_RETURN_IF_ERROR(
      add(kDependent, with("float32", "A[vk] * B[vk]"), one_core));
  TF_RETURN_IF_ERROR(add(kDependent, with("int32", "A[vk]"), one_core));
  TF_RETURN_IF_ERROR(add(kColumnSums, l1.words, one_core));
  TF_RETURN_IF_ERROR(add(kColumnSums, l2.words, one_core));
  TF_RETURN_IF_ERROR(add(kColumnSums, l3.words, one_core));
  TF_RETURN_IF_ERROR(add(kColumnSums, memory.words, one_core));
  TF_RETURN_IF_ERROR(add(kColumnSums, all_memory.words, target));
  for (int round = 0; round < kRounds; ++round) {
    for (Measured& program : programs) {
      TF_ASSIGN_OR_RETURN(const MedianInterval time,
                          TimeFunction(program.function, kBudget, clock));
      if (program.seconds == 0 || time.median < program.seconds) {
        program.seconds = time.median;
      }
    }
  }
  const auto rate = [&](double amount, size_t program) {
    return amount / std::max(programs[program].seconds, 1e-12);
  };
  MachinePeaks peaks;
  peaks.clock_hz = rate(kChain, kClock);
  peaks.float32_flops = rate(ProductFlops(target, 1), kPeak);
  peaks.all_float32_flops = std::max(
      rate(ProductFlops(target, cores), kAllPeak), peaks.float32_flops);
  peaks.latency_seconds = 1 / rate(kChain, kLatency);
  peaks.bytes_from_l1 = rate(l1.bytes, kL1);
  peaks.bytes_from_l2 = rate(l2.bytes, kL2);
  peaks.bytes_from_l3 = rate(l3.bytes, kL3);
  peaks.bytes_from_memory = rate(memory.bytes, kMemory);
  peaks.all_bytes_from_memory =
      std::max(rate(all_memory.bytes, kAllMemory), peaks.bytes_from_memory);
  return peaks;
}

absl::StatusOr<MachinePeaks> CachedPeaks(const std::string& folder,
                                         const target::Target& target,
                                         bool measure_again, Clock& clock) {
  const std::string key = absl::StrCat(target.Key(), "\n", target.device_model,
                                       "\n", Fingerprint());
  const std::string path =
      absl::StrCat(folder, "/peaks-", Sha256Hex(key).substr(0, 16), ".json");
  if (!measure_again && !folder.empty()) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    const auto known = PeaksFromJson(text.str());
    if (known.ok()) return known;
  }
  TF_ASSIGN_OR_RETURN(const MachinePeaks peaks, MeasurePeaks(target, clock));
  if (!folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    // Renamed, so that a reader never sees a part of it.
    const std::string temporary = absl::StrCat(path, ".", getpid());
    std::ofstream(temporary) << PeaksToJson(peaks) << "\n";
    std::filesystem::rename(temporary, path, error);
  }
  return peaks;
}

std::string PeaksFolder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) {
    return absl::StrCat(cache, "/tilefarm");
  }
  if (const char* home = std::getenv("HOME"); home && *home) {
    return absl::StrCat(home, "/.cache/tilefarm");
  }
  return "";
}

cost_model::CoreModel CoreOf(const MachinePeaks& peaks,
                             const target::Target& target) {
  const double hz = peaks.clock_hz;
  const double lanes = target.vector_lanes(4);
  const double cores = std::max(target.cores, 1);
  cost_model::CoreModel core;
  core.vector_ops = peaks.float32_flops / (2 * lanes) / hz;
  // Loads of whole vectors; what stores reach was not measured, and is half of
  // that on the cores that we know.
  core.loads = peaks.bytes_from_l1 / (4 * lanes) / hz;
  core.stores = core.loads / 2;
  core.latency = peaks.latency_seconds * hz;
  core.bytes_from_l2 = peaks.bytes_from_l2 / hz;
  core.bytes_from_l3 = peaks.bytes_from_l3 / hz;
  core.bytes_from_memory = peaks.bytes_from_memory / hz;
  core.bytes_from_memory_shared = peaks.all_bytes_from_memory / cores / hz;
  return core;
}

std::string PeaksToJson(const MachinePeaks& peaks) {
  nlohmann::ordered_json json;
  for (const Field& field : kFields) json[field.name] = peaks.*field.value;
  return json.dump();
}

absl::StatusOr<MachinePeaks> PeaksFromJson(const std::string& text) {
  const auto json = ParseJson(text);
  if (!json.is_object()) {
    return absl::InvalidArgumentError("not a JSON object with peaks");
  }
  MachinePeaks peaks;
  for (const Field& field : kFields) {
    const double value = Number(json, field.name);
    if (!(value > 0) || !std::isfinite(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("peaks: ", field.name, " is not a positive number"));
    }
    peaks.*field.value = value;
  }
  return peaks;
}

}  // namespace tilefarm::driver

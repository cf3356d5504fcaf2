// What rpc-worker asks of tune-runner, as payloads of frames (frames.h). The
// fields of a payload stand in the order of the struct's members below.
//
//   worker                      runner
//     kHello                 ->
//                            <-  kHelloReply
//     kLoadWorkload          ->            runs the reference, keeps inputs
//                            <-  kLoadReply              and reference outputs,
//                                                        and their bounds
//     kRun                   ->            forks, checks, times
//     (kCancel)              ->            kills the child of that run
//                            <-  kRunReply
//     kCompare               ->            the same with two artifacts, which
//                            <-  kCompareReply            it times alternately
//
// One request at a time. Only kCancel may be sent before its run, during it, or
// after it: the run that it names is answered with kCancelled as soon as
// possible, or is over already. The end of input ends the runner and a running
// child.
//
// Knows the C and C++ standard libraries only.
#ifndef TILEFARM_WORKER_RUNNER_PROTOCOL_H_
#define TILEFARM_WORKER_RUNNER_PROTOCOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/frames.h"

namespace tilefarm::worker {

enum class RunnerFrame : uint32_t {
  kHello = 1,  // empty
  kHelloReply = 2,
  kLoadWorkload = 3,
  kLoadReply = 4,
  kRun = 5,
  kRunReply = 6,
  kCancel = 7,
  kCompare = 8,
  kCompareReply = 9,
};

// u8 on the wire.
enum class ElementType : uint8_t {
  kFloat16 = 1,
  kBFloat16 = 2,
  kFloat32 = 3,
  kFloat64 = 4,
  kInt8 = 5,
  kInt16 = 6,
  kInt32 = 7,
  kInt64 = 8,
  kUInt8 = 9,
  kUInt16 = 10,
  kUInt32 = 11,
  kUInt64 = 12,
  kBool = 13,
};
// Bytes of one element; 0 for a value that is none of the above.
uint64_t ElementBytes(ElementType type);
// Of "float32", "bfloat16", "bool", ...; nullopt: of none.
std::optional<ElementType> ParseElementType(std::string_view name);
bool IsFloat(ElementType type);
// Bytes of one element's bound: it is a float64 for float64, else a float32.
uint64_t BoundBytes(ElementType type);

// One parameter of the function, in the order of its calling convention.
struct BufferSpec {
  ElementType type = ElementType::kFloat32;
  // The function reads its initial contents, which are inputs. Otherwise it
  // starts poisoned.
  bool read = false;
  // An output: compared with the reference.
  bool written = false;
  uint64_t elements = 0;
  // Values of integer inputs, both ends included.
  int64_t low = 0, high = 0;
  // Its values are rounded, and the oracle has a bound for each element.
  // Otherwise they are exact.
  bool bounded = false;
  // It is constant in use: SYMBOL_pack changes its layout for SYMBOL_packed,
  // which is timed.
  bool layout_free = false;
};

// What the runner needs to know about a program; made by tune-builder.
struct ProgramSpec {
  std::vector<BufferSpec> buffers;
  // Memory that the oracle allocates.
  uint64_t oracle_bytes = 0;
  // When it is called, its layout-free buffers are in no cache
  // (compiler/ir/function_attrs.h).
  bool cold_constants = false;
};

struct HelloReply {
  std::string version;    // of the release
  std::string isolation;  // strongest isolation of children (isolation.h)
};

// Limits of a forked child. memory_bytes: what it may map in addition to the
// buffers. cpus empty: as inherited.
struct ChildLimits {
  uint32_t timeout_ms = 10000;
  uint64_t memory_bytes = uint64_t{2} << 30;
  std::vector<uint32_t> cpus;
};

struct LoadWorkload {
  uint64_t run_id = 0;  // of the run that it is for; 0: none
  std::string key;      // names the workload, its seed included, in later kRuns
  std::string symbol;
  // The oracle: a shared object. SYMBOL is called as
  //   int SYMBOL(void* const* buffers, void* const* bounds)
  // and gives every output and, where `bounded`, the bound of each element
  // (compiler/oracle/oracle.h). Empty: there is no reference, and the workload
  // is for comparisons of models.
  std::string artifact;
  uint64_t input_seed = 0;
  ProgramSpec program;
  ChildLimits limits;
};

struct LoadReply {
  bool ok = false;
  std::string error;
  double reference_seconds = 0;
  // Inputs are in (0, 1]: with signs the reference was not finite or failed.
  bool positive_inputs = false;
};

struct RunRequest {
  uint64_t run_id = 0;  // for kCancel; 0: cannot be cancelled
  std::string key;
  std::string symbol;
  std::string artifact;
  ChildLimits limits;
  bool flush_cache = false;
  uint64_t last_cache_bytes = 0;  // of the device; 0: 32 MiB
  uint32_t min_samples = 0;       // 0: 5
  uint32_t max_samples = 0;       // 0: 30
  uint32_t target_ms = 0;         // 0: 40
  double best_seconds = 0;        // 0: none
  // This fraction of the root mean square of an output's bounds is added to
  // each bound, for an algorithm whose rounding depends on neighbouring
  // elements.
  double spread = 0;
};

// Two artifacts of one workload, loaded by one child and timed alternately on
// the same buffers.
struct CompareRequest {
  struct Side {
    std::string symbol;
    std::string artifact;
    double spread = 0;  // as in RunRequest
  };
  uint64_t run_id = 0;  // for kCancel; 0: cannot be cancelled
  std::string key;
  Side baseline, candidate;
  ChildLimits limits;
  bool flush_cache = false;
  uint64_t last_cache_bytes = 0;  // of the device; 0: 32 MiB
  // Both are model artifacts: the workload has no reference, and its buffers
  // are the model's inputs and outputs. The baseline's outputs are what the
  // candidate's are compared with.
  bool is_model = false;
  // The candidate is loaded first, and begins each round of four samples:
  // first, second, second, first.
  bool candidate_first = false;
  uint32_t sample_us = 0;      // a sample lasts this long at least; 0: 500
  uint32_t cluster_ms = 0;     // all samples together; 0: 40
  uint32_t fewest_rounds = 0;  // 0: 4
  uint32_t most_rounds = 0;    // 0: 64
};

struct CancelRun {
  uint64_t run_id = 0;
};

enum class RunStatus : uint8_t {
  kOk = 0,
  kRunError = 1,
  kRunTimeout = 2,
  kWrongResult = 3,
  kUnknownWorkload = 4,  // send kLoadWorkload, then the run again
  kCancelled = 5,
};

// The state of a device that is not this machine's processor, after the last
// sample; 0: not known.
struct DeviceConditions {
  double clock_mhz = 0;  // of its processors
  double memory_clock_mhz = 0;
  double temperature_c = 0;
  double power_w = 0;
};

struct RunReply {
  RunStatus status = RunStatus::kOk;
  std::string error;
  std::vector<double> seconds;
  double median_seconds = 0;
  double ci_low_seconds = 0, ci_high_seconds = 0;
  bool stopped_early = false;
  bool verified = false;
  double max_abs_error = 0;
  // Largest |difference| / bound: beyond 1 the result is wrong.
  double max_rel_error = 0;
  // Samples discarded because the kernel was switched out.
  uint32_t retaken = 0;
  // Samples taken while something else used the core (base/quiet_core.h).
  uint32_t shared = 0;
  // Time of a fixed chain of multiplications, which shows the core's clock
  // rate.
  double canary_seconds = 0;
  // Total time of the child, without starting it and judging its outputs.
  double child_seconds = 0;
  std::string isolation;  // of the candidate (isolation.h)
  // On a device that is not this machine's processor: how samples were taken,
  // in words, and its state. Empty otherwise.
  std::string timing;
  DeviceConditions conditions;
};

// Which of two artifacts; u8 on the wire.
enum class ComparedSide : uint8_t {
  kNeither = 0,
  kBaseline = 1,
  kCandidate = 2
};

struct CompareReply {
  RunStatus status = RunStatus::kOk;
  std::string error;
  ComparedSide failed = ComparedSide::kNeither;  // where it is known
  // Seconds of a run, by pair of neighbouring samples.
  std::vector<double> baseline_seconds, candidate_seconds;
  bool verified = false;  // both
  // The larger errors of both, as in RunReply.
  double max_abs_error = 0, max_rel_error = 0;
  uint32_t retaken = 0;  // pairs
  uint32_t shared = 0;   // rounds
  double canary_seconds = 0;
  double child_seconds = 0;
  std::string isolation;
};

std::string Encode(const ProgramSpec& value);
std::string Encode(const HelloReply& value);
std::string Encode(const LoadWorkload& value);
std::string Encode(const LoadReply& value);
std::string Encode(const RunRequest& value);
std::string Encode(const RunReply& value);
std::string Encode(const CompareRequest& value);
std::string Encode(const CompareReply& value);
std::string Encode(const CancelRun& value);

// False: the payload is not exactly one such value, or a value is out of range
// (element types, sizes that overflow).
bool Decode(std::string_view payload, ProgramSpec* value);
bool Decode(std::string_view payload, HelloReply* value);
bool Decode(std::string_view payload, LoadWorkload* value);
bool Decode(std::string_view payload, LoadReply* value);
bool Decode(std::string_view payload, RunRequest* value);
bool Decode(std::string_view payload, RunReply* value);
bool Decode(std::string_view payload, CompareRequest* value);
bool Decode(std::string_view payload, CompareReply* value);
bool Decode(std::string_view payload, CancelRun* value);

// The largest number of parameters of a function.
inline constexpr uint32_t kMaxBuffers = 512;

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_PROTOCOL_H_

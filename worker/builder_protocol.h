// What rpc-worker asks of tune-builder, as payloads of frames (frames.h). The
// fields of a payload stand in the order of the struct's members below.
//
//   worker                      builder
//     kHello                 ->
//                            <-  kHelloReply
//     kBuild                 ->            parses, replays, compiles
//                            <-  kBuildReply
//
// One request at a time. A request cannot be cancelled: a builder that takes
// too long or too much memory is killed, and another one is started.
#ifndef TILEFARM_WORKER_BUILDER_PROTOCOL_H_
#define TILEFARM_WORKER_BUILDER_PROTOCOL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "worker/frames.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

enum class BuilderFrame : uint32_t {
  kHello = 101,  // empty
  kHelloReply = 102,
  kBuild = 103,
  kBuildReply = 104,
};

// Exit status of a builder that exceeded its memory limit, after which its
// state cannot be trusted.
inline constexpr int kBuilderOutOfMemory = 3;

struct BuilderHelloReply {
  std::string version;
  std::string fingerprint;  // of its compiler
  // BuilderConfinement of builder/sandbox.h.
  std::string confinement;
  std::string shortfall;
  std::string directory;
};

struct BuildRequest {
  std::string program;
  // Complete trace. Ignored if `reference` is set.
  std::string trace;
  // ProgramHash that the replayed program must have; empty: not checked.
  std::string scheduled_hash;
  std::string target;
  // Build the program's oracle (compiler/oracle/oracle.h). The reply then
  // describes the program's buffers.
  bool reference = false;
  uint64_t memory_bytes = 0;  // 0: 4 GiB
};

enum class BuildStatus : uint8_t {
  kOk = 0,
  kInvalidSchedule = 1,
  kCompileError = 2,
};

struct BuildReply {
  BuildStatus status = BuildStatus::kOk;
  std::string error;
  std::string artifact;  // a shared object
  std::string symbol;
  std::string code_digest;
  double compile_seconds = 0;
  uint32_t cores = 1;   // of the target
  ProgramSpec program;  // empty unless the reference was requested
  double spread = 0;    // RunRequest::spread of the candidate
};

std::string Encode(const BuilderHelloReply& value);
std::string Encode(const BuildRequest& value);
std::string Encode(const BuildReply& value);

// False: the payload is not exactly one such value.
bool Decode(std::string_view payload, BuilderHelloReply* value);
bool Decode(std::string_view payload, BuildRequest* value);
bool Decode(std::string_view payload, BuildReply* value);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_BUILDER_PROTOCOL_H_

#include "tests/fuzz/worker_targets.h"

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "worker/builder_protocol.h"
#include "worker/runner_protocol.h"
#include "worker/spool.h"

namespace tilefarm::fuzz {
namespace {

v1::Lease GoodLease(const std::string& id) {
  v1::Lease lease;
  lease.set_lease_id(id);
  lease.set_candidate_id("candidate-" + id);
  lease.set_program("good");
  lease.set_trace("good");
  lease.set_workload_hash("workload");
  lease.set_target("fake");
  v1::MeasureOptions& options = *lease.mutable_options();
  options.set_build_timeout_ms(10000);
  options.set_run_timeout_ms(10000);
  options.set_max_samples(3);
  options.set_target_ms(3);
  return lease;
}

// Decodes the payload as a T; if it is accepted, a round trip must succeed.
template <typename T>
bool GoesAround(const std::string& payload) {
  T value, again;
  return !worker::Decode(payload, &value) ||
         worker::Decode(worker::Encode(value), &again);
}

worker::ProgramSpec AnyProgram(ByteSource& source) {
  worker::ProgramSpec program;
  worker::BufferSpec buffer;
  buffer.elements = 1 + source.Below(1000);
  buffer.read = source.Chance(128);
  buffer.written = source.Chance(128);
  program.buffers.assign(source.Below(5), buffer);
  return program;
}

std::string AnyPayload(ByteSource& source) {
  switch (source.Below(9)) {
    case 7: {
      worker::CompareRequest compare;
      compare.key = "key";
      compare.baseline.artifact = "artifact";
      compare.candidate.symbol = "f";
      return worker::Encode(compare);
    }
    case 8: {
      worker::CompareReply reply;
      reply.error = "error";
      reply.baseline_seconds = {1e-3, 2e-3};
      reply.candidate_seconds = {2e-3, 1e-3};
      return worker::Encode(reply);
    }
    case 0: {
      worker::LoadWorkload load;
      load.key = "key";
      load.symbol = "f";
      load.artifact =
          "\x7f"
          "ELF";
      load.program = AnyProgram(source);
      load.limits.cpus = {0, 1};
      return worker::Encode(load);
    }
    case 1: {
      worker::RunRequest run;
      run.key = "key";
      run.artifact = "artifact";
      return worker::Encode(run);
    }
    case 2: {
      worker::RunReply reply;
      reply.error = "error";
      reply.seconds = {1e-3, 2e-3};
      return worker::Encode(reply);
    }
    case 3:
      return worker::Encode(worker::CancelRun{source.Bits()});
    case 4: {
      worker::BuildRequest request;
      request.program = "program";
      request.trace = "trace";
      return worker::Encode(request);
    }
    case 5: {
      worker::BuildReply reply;
      reply.artifact = "artifact";
      reply.program = AnyProgram(source);
      return worker::Encode(reply);
    }
    default: {
      worker::LoadReply reply;
      reply.error = "error";
      return worker::Encode(reply);
    }
  }
}

}  // namespace

WorkerTarget::WorkerTarget() {
  signal(SIGPIPE, SIG_IGN);
  farm_.Start();
  worker::Worker::Options options;
  options.server = farm_.address();
  options.hello.set_name("device");
  options.hello.set_fingerprint("fake");
  options.state_directory = directory_.File("state");
  options.pipeline.builder_command = {TILEFARM_TEST_FAKE_BUILDER,
                                      TILEFARM_TEST_KERNELS};
  options.pipeline.runner_command = {std::string(TILEFARM_BIN_DIR) +
                                     "/tune-runner"};
  options.pipeline.cpus = {0, 1};
  options.pipeline.lock_directory = directory_.File("locks");
  options.timeouts.reconnect_first = absl::Milliseconds(20);
  options.timeouts.reconnect_last = absl::Milliseconds(100);
  options.timeouts.end_stream = absl::Milliseconds(50);
  auto started = worker::Worker::Start(std::move(options));
  if (!started.ok() || !farm_.AwaitHellos(1)) {
    std::fprintf(stderr, "the worker does not start\n");
    std::abort();
  }
  worker_ = *std::move(started);
  farm_.Await([this] { return worker_->connected(); });
}

WorkerTarget::~WorkerTarget() {
  worker_.reset();
  farm_.Stop();
}

std::string WorkerTarget::ServerStream(ByteSource& source) {
  const std::string name = absl::StrCat("c", ++conversations_);
  const Words words = {name + "-a", name + "-b", "good",    "wrong",
                       "invalid",   "fail",      "crash",   "aborts",
                       "exits",     "missing",   "garbage", "fake"};
  Words leases = {""};
  for (size_t n = 1 + source.Below(6); n > 0; --n) {
    v1::ServerMessage message;
    FillMessage(source, words, &message);
    if (message.has_lease()) {
      v1::Lease& lease = *message.mutable_lease();
      leases.push_back(lease.lease_id());
      // No test's business to wait for.
      if (source.Chance(128)) {
        lease.mutable_options()->set_build_timeout_ms(300);
        lease.mutable_options()->set_run_timeout_ms(300);
      }
    }
    farm_.Send(message);
  }
  for (const std::string& lease : leases) {
    v1::ServerMessage message;
    message.mutable_cancel()->set_lease_id(lease);
    farm_.Send(message);
  }
  // The worker itself replaces a stream that a message broke; messages sent
  // before that are lost.
  const v1::Lease good = GoodLease(name + "-good");
  int polls = 0;
  const bool answered = farm_.Await([&] {
    if (polls++ % 100 == 0) farm_.SendLease(good);
    return farm_.result(good.lease_id()).lease_id() == good.lease_id();
  });
  if (!answered) return "the worker does not answer any more";
  const v1::Measurement measured = farm_.result(good.lease_id()).measurement();
  return measured.status() == "ok"
             ? ""
             : absl::StrCat("a good lease after it: ", measured.status(), ": ",
                            measured.error());
}

std::string FramePayloads(ByteSource& source) {
  const std::string payload = Damaged(source, AnyPayload(source));
  const bool fine = GoesAround<worker::LoadWorkload>(payload) &&
                    GoesAround<worker::LoadReply>(payload) &&
                    GoesAround<worker::RunRequest>(payload) &&
                    GoesAround<worker::RunReply>(payload) &&
                    GoesAround<worker::CompareRequest>(payload) &&
                    GoesAround<worker::CompareReply>(payload) &&
                    GoesAround<worker::CancelRun>(payload) &&
                    GoesAround<worker::BuilderHelloReply>(payload) &&
                    GoesAround<worker::BuildRequest>(payload) &&
                    GoesAround<worker::BuildReply>(payload);
  return fine ? "" : "decoded, and encoded to what does not decode";
}

std::string SpoolFiles(ByteSource& source) {
  const testing::TempDir directory;
  const std::string folder = directory.File("spool/database");
  std::filesystem::create_directories(folder);
  static constexpr const char* kNames[] = {
      "000000000001-a.result",         "000000000002-b.result",
      "000000000003-c.result.tmp",     "x.result",
      "18446744073709551615-d.result", "-1-e.result",
      "000000000001-f.result",         "7"};
  for (size_t n = source.Below(5); n > 0; --n) {
    v1::Result result;
    FillMessage(source, {"a", "b", "ok"}, &result);
    const std::string body = result.SerializeAsString();
    std::string content = Sha256Hex(body) + body;
    if (source.Chance(128)) content = Damaged(source, content);
    std::ofstream(folder + "/" + kNames[source.Below(std::size(kNames))],
                  std::ios::binary)
        << content;
  }
  if (source.Chance(32)) std::ofstream(directory.File("spool/file")) << "x";
  for (int open = 0; open < 2; ++open) {
    auto spool = worker::Spool::Open(directory.path());
    if (!spool.ok()) return spool.status().ToString();
    v1::Result result;
    result.set_lease_id("new");
    const size_t before = (*spool)->Pending("database").size();
    if (!(*spool)->Put("database", result).ok()) return "cannot put";
    if ((*spool)->Pending("database").size() != before + 1) {
      return "a new result took the place of another";
    }
    (*spool)->Acknowledge("database", "new");
    if ((*spool)->Pending("database").size() != before) {
      return "an acknowledgement forgot another result";
    }
  }
  return "";
}

}  // namespace tilefarm::fuzz

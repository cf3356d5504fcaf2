#include "tests/fuzz/server_targets.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "database/store.h"
#include "proto/tilefarm/v1/protocol_version.h"
#include "server/jobs/record_import.h"
#include "tests/server/fake_search.h"

namespace tilefarm::fuzz {
namespace {

using testing::kFingerprint;
using testing::kMatmul;
using testing::TestTarget;

constexpr size_t kMostMessages = 16;
constexpr std::chrono::seconds kPatience(20);

constexpr char kTrace[] =
    R"(b0 = sch.get_block(name="C", func_name="main")
l1, l2, l3 = sch.get_loops(block=b0)
v4, v5 = sch.sample_perfect_tile(loop=l1, n=2, max_innermost_factor=8, decision=[4, 4])
l6, l7 = sch.split(loop=l1, factors=[v4, v5], preserve_unit_iters=True)
l8, l9 = sch.split(loop=l2, factors=[None, 8])
sch.reorder(l6, l8, l3, l7, l9)
l10 = sch.fuse(l6, l8)
sch.parallel(loop=l10)
sch.vectorize(loop=l9)
sch.unroll(loop=l7)
v11 = sch.sample_categorical(candidates=[0, 16, 64], probs=[0.3, 0.3, 0.4], decision=1)
sch.annotate(block_or_loop=b0, ann_key="meta_schedule.unroll_explicit", ann_val=v11)
b12 = sch.decompose_reduction(block=b0, loop=l3)
sch.enter_postproc()
)";

v1::WorkerMessage HelloOf(ByteSource& source) {
  v1::WorkerMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol_version(v1::kProtocolVersion);
  hello.set_name("w" + std::to_string(source.Below(4)));
  hello.set_boot_id("boot" + std::to_string(source.Below(3)));
  hello.set_fingerprint(kFingerprint);
  hello.mutable_device()->set_target(TestTarget().Key());
  hello.mutable_device()->set_cpu("znver4");
  hello.mutable_device()->set_cores(4);
  return message;
}

std::string GoodRecord() {
  database::Record record;
  const auto matmul = *ir::ParseFunction(kMatmul);
  record.candidate_id = "candidate";
  record.workload_hash = ir::WorkloadHash(*matmul);
  record.program = kMatmul;
  record.trace = kTrace;
  record.target = TestTarget().Key();
  record.device = "w0@1234";
  record.device_model = "model";
  record.seconds = {1e-3, 2e-3};
  record.median_seconds = 1e-3;
  record.verified = true;
  record.fingerprint = kFingerprint;
  return database::RecordToJson(record);
}

// The worker's side of a stream.
class WorkerSide {
 public:
  explicit WorkerSide(v1::Farm::Stub& stub) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub.Connect(&context_);
    reader_ = std::thread([this] {
      v1::ServerMessage message;
      while (stream_->Read(&message)) {
        MutexLock lock(mutex_);
        if (message.has_lease()) leases_.push_back(message.lease());
      }
    });
  }
  // Ends the stream and returns its status.
  grpc::Status End(bool in_order) {
    if (in_order) {
      stream_->WritesDone();
    } else {
      context_.TryCancel();
    }
    reader_.join();
    return stream_->Finish();
  }
  bool Write(const v1::WorkerMessage& message) {
    return stream_->Write(message);
  }
  std::vector<v1::Lease> leases() {
    MutexLock lock(mutex_);
    return leases_;
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::WorkerMessage, v1::ServerMessage>>
      stream_;
  Mutex mutex_;
  std::vector<v1::Lease> leases_ ABSL_GUARDED_BY(mutex_);
  std::thread reader_;
};

}  // namespace

ServerTarget::ServerTarget() {
  services::ServerOptions options;
  options.database_path = ":memory:";
  options.listen = "127.0.0.1:0";
  options.fingerprint = kFingerprint;
  options.release = "test";
  options.search_factory = testing::FakeSearchFactory();
  auto server = services::Server::Start(std::move(options));
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    std::abort();
  }
  server_ = *std::move(server);
  const auto channel = grpc::CreateChannel(server_->address(),
                                           grpc::InsecureChannelCredentials());
  farm_ = v1::Farm::NewStub(channel);
  tune_ = v1::Tune::NewStub(channel);
  words_ = {kMatmul, TestTarget().Key(), kTrace,  "xgboost", "random",
            "host",  "evolutionary",     "job-1", "w0",      GoodRecord()};
  v1::SubmitRequest endless;
  endless.set_request_id("endless");
  endless.set_program(kMatmul);
  endless.set_target(TestTarget().Key());
  endless.set_trials(1'000'000);
  const std::string failure = Submit(endless);
  if (!failure.empty()) {
    std::fprintf(stderr, "%s\n", failure.c_str());
    std::abort();
  }
}

ServerTarget::~ServerTarget() = default;

std::string ServerTarget::Submit(const v1::SubmitRequest& request) {
  grpc::ClientContext context;
  v1::SubmitResponse response;
  const grpc::Status status = tune_->Submit(&context, request, &response);
  return status.ok() ? "" : "submit: " + status.error_message();
}

std::string ServerTarget::Health() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::ListDevicesResponse response;
  const grpc::Status status =
      tune_->ListDevices(&context, v1::ListDevicesRequest(), &response);
  return status.ok() ? ""
                     : "the server does not answer: " + status.error_message();
}

std::string ServerTarget::WorkerStream(ByteSource& source) {
  WorkerSide worker(*farm_);
  Words words = {
      "ok", "run_error", "compile_error", "wrong_result", "none",
      "w0", "boot0",     kFingerprint,    "{}",           TestTarget().Key()};
  v1::WorkerMessage message = HelloOf(source);
  if (source.Chance(24)) FillMessage(source, words, &message);
  bool open = worker.Write(message);
  for (size_t n = 1 + source.Below(kMostMessages); open && n > 0; --n) {
    const std::vector<v1::Lease> leases = worker.leases();
    for (size_t i = words.size() - 10; i < leases.size(); ++i) {
      words.push_back(leases[i].lease_id());
      words.push_back(leases[i].candidate_id());
    }
    message.Clear();
    const size_t kind = source.Below(4);
    if (kind == 0) {
      FillMessage(source, words, &message);
    } else if (kind == 1) {
      v1::State& state = *message.mutable_state();
      FillMessage(source, words, &state);
      state.set_slots(1 + static_cast<uint32_t>(source.Below(4)));
      state.set_draining(source.Chance(16));
    } else {
      v1::Result& result = *message.mutable_result();
      FillMessage(source, words, &result);
      if (!leases.empty()) {
        const v1::Lease& lease = leases[source.Below(leases.size())];
        result.set_lease_id(lease.lease_id());
        result.set_candidate_id(lease.candidate_id());
      }
      if (kind == 3) {
        v1::Measurement& measured = *result.mutable_measurement();
        measured.Clear();
        measured.set_status("ok");
        measured.set_verified(true);
        measured.set_median_seconds(1e-3);
        measured.add_seconds(1e-3);
      }
      if (source.Chance(128)) {
        FillMessage(source, words, message.mutable_state());
      }
    }
    open = worker.Write(message);
  }
  const grpc::Status end = worker.End(source.Chance(128));
  if (end.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return "the stream does not end";
  }
  return Health();
}

std::string ServerTarget::OneCall(ByteSource& source,
                                  grpc::ClientContext& context) {
  switch (source.Below(7)) {
    case 0: {
      v1::SubmitRequest request;
      FillMessage(source, words_, &request);
      if (source.Chance(128)) {
        request.set_program(kMatmul);
        request.set_target(TestTarget().Key());
      }
      v1::SubmitResponse response;
      if (tune_->Submit(&context, request, &response).ok()) {
        v1::CancelRequest cancel;
        cancel.set_job_id(response.job_id());
        v1::CancelResponse cancelled;
        grpc::ClientContext cancels;
        if (!tune_->Cancel(&cancels, cancel, &cancelled).ok()) {
          return "a job that was submitted cannot be cancelled";
        }
      }
      return "";
    }
    case 1: {
      v1::CancelRequest request;
      FillMessage(source, words_, &request);
      v1::CancelResponse response;
      tune_->Cancel(&context, request, &response);
      return "";
    }
    case 2: {
      v1::WatchRequest request;
      FillMessage(source, words_, &request);
      auto reader = tune_->Watch(&context, request);
      v1::JobUpdate update;
      reader->Read(&update);
      context.TryCancel();
      reader->Finish();
      return "";
    }
    case 3: {
      v1::BestRequest request;
      FillMessage(source, words_, &request);
      v1::BestResponse response;
      tune_->Best(&context, request, &response);
      return "";
    }
    case 4: {
      v1::MeasureRequest request;
      FillMessage(source, words_, &request);
      v1::MeasureResponse response;
      context.set_deadline(std::chrono::system_clock::now() +
                           std::chrono::milliseconds(20));
      tune_->Measure(&context, request, &response);
      return "";
    }
    case 5: {
      v1::DbImportResponse response;
      auto writer = tune_->DbImport(&context, &response);
      for (size_t n = source.Below(4); n > 0; --n) {
        v1::DbLine line;
        FillMessage(source, words_, &line);
        if (!writer->Write(line)) break;
      }
      writer->WritesDone();
      writer->Finish();
      return "";
    }
    default: {
      // Disconnect in the middle.
      auto reader = tune_->DbExport(&context, v1::DbExportRequest());
      v1::DbLine line;
      for (size_t n = source.Below(4); n > 0 && reader->Read(&line); --n) {
      }
      context.TryCancel();
      reader->Finish();
      return "";
    }
  }
}

std::string ServerTarget::ClientCalls(ByteSource& source) {
  for (size_t n = 1 + source.Below(6); n > 0; --n) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const std::string violation = OneCall(source, context);
    if (!violation.empty()) return violation;
  }
  return Health();
}

std::string TraceText(ByteSource& source) {
  const std::string text = Damaged(source, kTrace);
  const auto trace = schedule::Trace::Parse(text);
  if (!trace.ok()) {
    return absl::IsInvalidArgument(trace.status())
               ? ""
               : "trace refused with " + trace.status().ToString();
  }
  const std::string printed = trace->Print();
  const auto again = schedule::Trace::Parse(printed);
  if (!again.ok()) {
    return "what was printed does not parse: " + again.status().ToString();
  }
  if (again->Print() != printed) return "printing is no fixed point";
  static const auto* const module = new ir::IRModule(*ir::ParseModule(kMatmul));
  const auto scheduled = schedule::Replay(*trace, *module);
  if (!scheduled.ok() && absl::IsInternal(scheduled.status())) {
    return "replay: " + scheduled.status().ToString();
  }
  return "";
}

std::string ImportLines(ByteSource& source) {
  static database::Store* const store =
      database::Store::Open(":memory:", database::Store::Mode::kReadWrite)
          ->release();
  static const auto* const line = new std::string(GoodRecord());
  std::string taken;
  {
    jobs::RecordImport import(*store);
    for (size_t n = 1 + source.Below(3); n > 0; --n) {
      const std::string damaged = Damaged(source, *line);
      const absl::Status added = import.Add(damaged);
      if (added.ok()) taken = damaged;
      if (absl::IsInternal(added)) return added.ToString();
    }
    const absl::Status finished = import.Finish();
    if (absl::IsInternal(finished)) return finished.ToString();
    if (!finished.ok()) taken.clear();
  }
  if (taken.empty()) return "";
  const auto record = database::RecordFromJson(taken);
  if (!record.ok()) return "taken and not readable: " + taken;
  const auto again = database::RecordFromJson(database::RecordToJson(*record));
  return again.ok() ? "" : "written and not readable: " + taken;
}

}  // namespace tilefarm::fuzz

#include "worker/worker.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "proto/tilefarm/v1/message_limits.h"
#include "proto/tilefarm/v1/protocol_version.h"
#include "transport/channel.h"
#include "transport/diagnose.h"

namespace tilefarm::worker {
namespace {

using v1::kProtocolVersion;
constexpr int kMaxMessageBytes = 64 << 20;

// The monotonic clock, because the wall clock may be stepped by hours.
absl::Duration Monotonic() { return Clock::Real().Monotonic(); }

uint64_t RandomBits() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// The one conversion of gRPC's errors.
absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const transport::Endpoint& server, const WorkerTimeouts& timeouts) {
  const auto milliseconds = [](absl::Duration duration) {
    return static_cast<int>(absl::ToInt64Milliseconds(duration));
  };
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   milliseconds(timeouts.keepalive_interval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   milliseconds(timeouts.keepalive_timeout));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // Otherwise attempts share a subchannel, which has its own back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return transport::OpenChannel(server, arguments);
}

// Why the server could not read a result of the lease; nullopt: it can.
std::optional<v1::Refusal> NoResultOf(const v1::Lease& lease) {
  v1::Result result;
  result.set_lease_id(lease.lease_id());
  result.set_candidate_id(lease.candidate_id());
  return v1::FindFault(*v1::Result::descriptor(), result.SerializeAsString());
}

// A change that is not urgent is sent within this time, mostly together with an
// urgent one, which saves a message for each candidate.
constexpr absl::Duration kStateDelay = absl::Milliseconds(250);
// Finding out why the server refuses a connection needs another connection: at
// most this often, and for at most so long.
constexpr absl::Duration kExplainAgain = absl::Seconds(30);
constexpr absl::Duration kExplainLimit = absl::Seconds(2);

}  // namespace

// One bidirectional stream. One thread reads and one writes; any may call
// Cancel.
class FarmStream {
 public:
  explicit FarmStream(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::Farm::NewStub(channel)), stream_(stub_->Connect(&context_)) {}

  // `more`: another message follows at once, and both may be sent together.
  bool Write(const v1::WorkerMessage& message, bool more = false) {
    grpc::WriteOptions options;
    if (more) options.set_buffer_hint();
    return stream_->Write(message, options);
  }
  void WritesDone() { stream_->WritesDone(); }
  bool Read(v1::ServerMessage* message) { return stream_->Read(message); }
  void Cancel() { context_.TryCancel(); }
  // To be called after Read has returned false.
  absl::Status Finish() { return FromGrpc(stream_->Finish()); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::Farm::Stub> stub_;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::WorkerMessage, v1::ServerMessage>>
      stream_;
};

Settings TimeoutSettings(WorkerTimeouts& timeouts) {
  Settings settings;
  settings.Add("reconnect_first", &timeouts.reconnect_first);
  settings.Add("reconnect_last", &timeouts.reconnect_last);
  settings.Add("state_interval", &timeouts.state_interval);
  settings.Add("finish_running", &timeouts.finish_running);
  settings.Add("await_acks", &timeouts.await_acks);
  settings.Add("end_stream", &timeouts.end_stream);
  settings.Add("spool_retry", &timeouts.spool_retry);
  settings.Add("builder_start", &timeouts.builder_start);
  settings.Add("builder_transfer", &timeouts.builder_transfer);
  settings.Add("keepalive_interval", &timeouts.keepalive_interval);
  settings.Add("keepalive_timeout", &timeouts.keepalive_timeout);
  return settings;
}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(Options options) {
  const absl::Status endpoint =
      transport::CheckEndpoint({options.server, options.security});
  if (!endpoint.ok()) return endpoint;
  absl::StatusOr<std::unique_ptr<Spool>> spool =
      Spool::Open(options.state_directory);
  if (!spool.ok()) return spool.status();
  return std::unique_ptr<Worker>(
      new Worker(std::move(options), *std::move(spool)));
}

Worker::Worker(Options options, std::unique_ptr<Spool> spool)
    : options_(std::move(options)),
      spool_(std::move(spool)),
      fetcher_({options_.server, options_.security}) {
  options_.hello.set_protocol_version(kProtocolVersion);
  options_.hello.set_boot_id(
      absl::StrFormat("%016x%016x", RandomBits(), RandomBits()));
  Pipeline::Options pipeline = options_.pipeline;
  pipeline.fingerprint = options_.hello.fingerprint();
  pipeline.emulated = options_.hello.device().emulated();
  pipeline.builder_timeouts = {
      .start = options_.timeouts.builder_start,
      .transfer = options_.timeouts.builder_transfer,
  };
  if (options_.hello.device().takes_artifacts()) {
    pipeline.artifact_directory = options_.state_directory + "/artifacts";
    pipeline.fetch_artifact = [this](const v1::Lease& lease,
                                     const v1::ComparedArtifact& artifact,
                                     absl::Duration limit) {
      return fetcher_.Fetch(lease.lease_id(), artifact, limit);
    };
  }
  pipeline.on_change = [this] { Wake(); };
  pipeline.on_progress = [this] {
    MutexLock lock(mutex_);
    state_by_ = std::min(state_by_, Monotonic() + kStateDelay);
    changed_.NotifyAll();
  };
  pipeline.on_result = [this](const std::string& uuid, v1::Result result) {
    Report(uuid, std::move(result));
  };
  pipeline_ = std::make_unique<Pipeline>(std::move(pipeline));
  reporter_ = std::thread([this] { ReportLoop(); });
  connector_ = std::thread([this] { ConnectLoop(); });
}

Worker::~Worker() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    if (stream_ != nullptr) stream_->Cancel();
    changed_.NotifyAll();
  }
  fetcher_.Shutdown();
  connector_.join();
  pipeline_.reset();  // calls Report until it is gone
  {
    MutexLock lock(mutex_);
    no_more_reports_ = true;
    changed_.NotifyAll();
  }
  reporter_.join();
}

void Worker::Shutdown() {
  {
    MutexLock lock(mutex_);
    draining_ = true;
  }
  pipeline_->DropWaiting();
  const bool finished = WaitUntil(
      [this] {
        if (!pipeline_->empty()) return false;
        MutexLock lock(mutex_);
        return reporting_.empty();
      },
      options_.timeouts.finish_running);
  if (!finished) {
    Log(LogLevel::kWarning, "worker", "ending with a lease unfinished");
  }
  WaitUntil(
      [this] {
        MutexLock lock(mutex_);
        return !connected_ || spool_->Pending(database_uuid_).empty();
      },
      options_.timeouts.await_acks);
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  WaitUntil(
      [this] {
        MutexLock lock(mutex_);
        return !connected_;
      },
      options_.timeouts.end_stream);
}

bool Worker::connected() const {
  MutexLock lock(mutex_);
  return connected_;
}

bool Worker::WaitUntil(const std::function<bool()>& condition,
                       absl::Duration timeout) {
  const absl::Duration deadline = Monotonic() + timeout;
  while (!condition()) {
    if (Monotonic() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

void Worker::Wake() {
  MutexLock lock(mutex_);
  state_due_ = true;
  changed_.NotifyAll();
}

// --- Results -------------------------------------------------------------

void Worker::Report(const std::string& database_uuid, v1::Result result) {
  MutexLock lock(mutex_);
  reporting_[result.lease_id()] = result.attempt();
  reports_.emplace_back(database_uuid, std::move(result));
  changed_.NotifyAll();
}

// A thread separate from the pipeline, so that the device does not wait for the
// disk.
void Worker::ReportLoop() {
  for (;;) {
    if (!spool_->writable()) RetrySpool();
    std::pair<std::string, v1::Result> report;
    {
      MutexLock lock(mutex_);
      if (reports_.empty()) {
        if (no_more_reports_) return;
        if (spool_->writable()) {
          changed_.Wait(mutex_);
        } else {
          changed_.WaitFor(mutex_, options_.timeouts.spool_retry);
        }
        continue;
      }
      report = std::move(reports_.front());
      reports_.pop_front();
    }
    const absl::Status status = spool_->Put(report.first, report.second);
    if (!status.ok()) {
      Log(LogLevel::kError, "worker",
          absl::StrCat("a result is kept in memory alone, and no new work is "
                       "taken until the state directory can be written (free "
                       "space there): ",
                       std::string(status.message())));
      Wake();
    }
    MutexLock lock(mutex_);
    reporting_.erase(report.second.lease_id());
    results_due_ = true;
    changed_.NotifyAll();
  }
}

void Worker::RetrySpool() {
  const absl::Duration now = Monotonic();
  if (now - spool_tried_ < options_.timeouts.spool_retry) return;
  spool_tried_ = now;
  if (!spool_->Retry().ok()) return;
  Log(LogLevel::kInfo, "worker",
      "the state directory can be written again; new work is taken");
  Wake();
}

// --- The stream ----------------------------------------------------------

void Worker::ConnectLoop() {
  Rng rng(RandomBits());
  absl::Duration pause = options_.timeouts.reconnect_first;
  std::string last_error;
  for (;;) {
    const absl::Duration start = Monotonic();
    const absl::Status status = ServeOneStream();
    MutexLock lock(mutex_);
    if (ending_) return;
    std::string error(status.message());
    if (error != last_error) {
      Log(LogLevel::kWarning, "worker",
          absl::StrCat("no stream to ", options_.server, ": ", error));
      last_error = std::move(error);
    }
    // A stream that lasted for a while resets the pause.
    if (Monotonic() - start > options_.timeouts.reconnect_last) {
      pause = options_.timeouts.reconnect_first;
      last_error.clear();
    }
    const absl::Duration until =
        Monotonic() + pause * (0.5 + 0.5 * rng.Uniform());
    while (!ending_ && Monotonic() < until) {
      changed_.WaitFor(mutex_, until - Monotonic());
    }
    if (ending_) return;
    pause = std::min(2 * pause, options_.timeouts.reconnect_last);
  }
}

absl::Status Worker::ServeOneStream() {
  const transport::Endpoint server{options_.server, options_.security};
  const auto channel = MakeChannel(server, options_.timeouts);
  if (!channel.ok()) return channel.status();  // its files may be restored
  FarmStream stream(*channel);
  {
    MutexLock lock(mutex_);
    if (ending_) stream.Cancel();
    stream_ = &stream;
  }
  v1::WorkerMessage hello;
  *hello.mutable_hello() = options_.hello;
  stream.Write(hello);
  v1::ServerMessage message;
  const bool answered = stream.Read(&message);
  bool welcomed = answered && message.has_welcome();
  const bool other_version =
      welcomed && message.welcome().protocol_version() != kProtocolVersion;
  if (other_version) welcomed = false;
  std::thread writer;
  if (welcomed) {
    const v1::Welcome& welcome = message.welcome();
    Log(LogLevel::kInfo, "worker",
        absl::StrCat("connected to ", options_.server, " as ",
                     options_.hello.name(), ", database ",
                     welcome.database_uuid()));
    {
      MutexLock lock(mutex_);
      connected_ = true;
      server_drains_ = false;
      database_uuid_ = welcome.database_uuid();
      state_interval_ = welcome.state_interval_ms() == 0
                            ? options_.timeouts.state_interval
                            : absl::Milliseconds(welcome.state_interval_ms());
      sent_.clear();
      results_due_ = true;
      state_due_ = true;
    }
    writer = std::thread([&] { WriteLoop(stream); });
    while (stream.Read(&message)) Take(message);
  } else if (answered) {  // otherwise the server has said why it ended
    stream.Cancel();
    while (stream.Read(&message)) {
    }
  }
  // A message that cannot be parsed ends reading here, but the server may not
  // notice and keep the stream open.
  bool finished = false;
  std::thread impatient([&] {
    const absl::Duration end = Monotonic() + options_.timeouts.end_stream;
    MutexLock lock(mutex_);
    while (!finished && Monotonic() < end) {
      changed_.WaitFor(mutex_, end - Monotonic());
    }
    if (!finished) stream.Cancel();
  });
  {
    MutexLock lock(mutex_);
    connected_ = false;
    stream_ = nullptr;
    changed_.NotifyAll();
  }
  if (writer.joinable()) writer.join();
  const absl::Status status = stream.Finish();
  {
    MutexLock lock(mutex_);
    finished = true;
    changed_.NotifyAll();
  }
  impatient.join();
  if (other_version) {
    return absl::FailedPreconditionError(
        "the server speaks another version of the protocol");
  }
  if (status.ok()) return absl::UnavailableError("the server ended the stream");
  return welcomed ? status : Explain(status, server);
}

absl::Status Worker::Explain(const absl::Status& status,
                             const transport::Endpoint& server) {
  if (!absl::IsUnavailable(status)) return status;
  const absl::Duration now = Clock::Real().Monotonic();
  if (status != unexplained_ || now - explained_at_ > kExplainAgain) {
    const absl::Status found = transport::Diagnose(server, kExplainLimit);
    unexplained_ = status;
    explained_ = found.ok() ? status : found;
    explained_at_ = Clock::Real().Monotonic();
  }
  return explained_;
}

void Worker::Take(const v1::ServerMessage& message) {
  for (const v1::Ack& ack : message.acks()) TakeAck(ack);
  switch (message.message_case()) {
    case v1::ServerMessage::kLease: {
      std::string uuid;
      {
        MutexLock lock(mutex_);
        if (draining_) return;  // the server grants it to another device
        uuid = database_uuid_;
      }
      // Otherwise the server would refuse every state with the lease in it.
      if (const auto refusal = NoResultOf(message.lease())) {
        Log(LogLevel::kWarning, "worker",
            absl::StrCat("a lease is not taken: ", refusal->why));
        return;
      }
      pipeline_->Add(uuid, message.lease());
      return;
    }
    case v1::ServerMessage::kCancel:
      pipeline_->Cancel(message.cancel().lease_id());
      return;
    case v1::ServerMessage::kDrain: {
      MutexLock lock(mutex_);
      server_drains_ = true;
      state_due_ = true;
      changed_.NotifyAll();
      return;
    }
    case v1::ServerMessage::kWelcome:
    case v1::ServerMessage::MESSAGE_NOT_SET:
      return;  // only acknowledgements, or a message of a later protocol
  }
}

void Worker::TakeAck(const v1::Ack& ack) {
  std::string uuid;
  {
    MutexLock lock(mutex_);
    uuid = database_uuid_;
  }
  for (const std::string& candidate :
       spool_->Acknowledge(uuid, ack.lease_id())) {
    Log(LogLevel::kDebug, "worker",
        absl::StrCat(ack.superseded() ? "superseded " : "acknowledged ",
                     candidate));
  }
}

v1::State Worker::ComposeState() {
  v1::State state;
  std::set<std::string> listed;
  for (v1::State::Held& held : pipeline_->Held()) {
    listed.insert(held.lease_id());
    *state.add_held() = std::move(held);
  }
  MutexLock lock(mutex_);
  // A lease is held until its result is acknowledged, so that the candidate is
  // not measured again.
  const auto add_done = [&](const std::string& lease_id, uint32_t attempt) {
    if (!listed.insert(lease_id).second) return;
    v1::State::Held& held = *state.add_held();
    held.set_lease_id(lease_id);
    held.set_attempt(attempt);
    held.set_phase(v1::LEASE_PHASE_REPORTED);
  };
  for (const auto& [lease_id, attempt] : reporting_) {
    add_done(lease_id, attempt);
  }
  for (const auto& result : spool_->Pending(database_uuid_)) {
    add_done(result->lease_id(), result->attempt());
  }
  state.set_draining(draining_ || server_drains_);
  if (!state.draining() && spool_->writable()) {
    state.set_free_slots(static_cast<uint32_t>(pipeline_->free_slots()));
    state.set_slots(static_cast<uint32_t>(pipeline_->capacity()));
  }
  return state;
}

void Worker::WriteLoop(FarmStream& stream) {
  absl::Duration next_state = Monotonic();
  for (;;) {
    std::vector<v1::WorkerMessage> messages;
    bool last = false;
    {
      MutexLock lock(mutex_);
      while (connected_ && !ending_ && !state_due_ && !results_due_ &&
             Monotonic() < std::min(next_state, state_by_)) {
        changed_.WaitFor(mutex_, std::min(next_state, state_by_) - Monotonic());
      }
      if (!connected_) return;
      last = ending_;
      if (results_due_) {
        for (const auto& result : spool_->Pending(database_uuid_)) {
          if (!sent_.insert(result->lease_id()).second) continue;
          *messages.emplace_back().mutable_result() = *result;
        }
      }
      results_due_ = false;
      state_due_ = false;
      state_by_ = absl::InfiniteDuration();
      next_state = Monotonic() + state_interval_;
    }
    // Sent with the last result, which frees a slot.
    if (messages.empty()) messages.emplace_back();
    *messages.back().mutable_state() = ComposeState();
    for (const v1::WorkerMessage& message : messages) {
      if (!stream.Write(message, /*more=*/&message != &messages.back())) {
        stream.Cancel();  // the reader notices, and ends the stream
        return;
      }
    }
    if (last) {
      stream.WritesDone();
      return;
    }
  }
}

}  // namespace tilefarm::worker

// rpc-worker: one device's connection to the farm.
//
//   stream (reads)  -> leases, cancels -> Pipeline
//   Pipeline        -> results -> Spool (durable) -> stream (writes)
//   stream (reads)  -> acks    -> Spool (forgets)
//
// The stream may break at any moment and for any time: the pipeline goes on
// with the leases it has, results wait in the spool, and a new stream under
// the same boot id takes over.
#ifndef TILEFARM_WORKER_WORKER_H_
#define TILEFARM_WORKER_WORKER_H_

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/settings.h"
#include "proto/tilefarm/v1/farm.pb.h"
#include "transport/endpoint.h"
#include "worker/pipeline.h"
#include "worker/spool.h"

namespace tilefarm::worker {

class FarmStream;  // worker.cc: one gRPC stream

// Every wait of the worker.
struct WorkerTimeouts {
  // Between attempts to connect: doubled from first to last, each with up to
  // half of it taken off at random, so that a farm does not return at once.
  absl::Duration reconnect_first = absl::Milliseconds(200);
  absl::Duration reconnect_last = absl::Seconds(10);
  // Where the server does not say.
  absl::Duration state_interval = absl::Seconds(5);
  // On shutdown, for what runs, for its acknowledgement, and for the stream to
  // end in order: together well within ten seconds.
  absl::Duration finish_running = absl::Seconds(5);
  absl::Duration await_acks = absl::Seconds(1);
  absl::Duration end_stream = absl::Seconds(1);
  // A state directory that took no result (disk full) is tried again after
  // this; until then the worker takes no new work.
  absl::Duration spool_retry = absl::Seconds(2);
  // A builder process may take so long to start, and so long to take a request
  // or to hand over an answer; then another one is started. A candidate's own
  // limit counts until the answer begins.
  absl::Duration builder_start = absl::Seconds(30);
  absl::Duration builder_transfer = absl::Seconds(30);
  // A connection on which nothing was heard for so long is asked for a sign of
  // life, and given up where none comes in the time after. The server takes
  // it ill to be asked more than four times in its own keepalive_interval.
  absl::Duration keepalive_interval = absl::Seconds(30);
  absl::Duration keepalive_timeout = absl::Seconds(10);
};

// Every member under its own name: for `--timeout KEY=DURATION` and for the
// configuration file. Points into `timeouts`.
Settings TimeoutSettings(WorkerTimeouts& timeouts);

// Thread-safe. Owns pipeline, spool and threads.
class Worker {
 public:
  struct Options {
    std::string server;  // HOST:PORT
    transport::ClientSecurity security;
    v1::Hello hello;  // all but protocol version and boot id
    std::string state_directory;
    Pipeline::Options pipeline;  // without its callbacks and fingerprint
    WorkerTimeouts timeouts;
  };

  // FailedPrecondition or another error of Spool::Open; errors of
  // transport::CheckEndpoint.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(Options options);
  // Without waiting for anything: see Shutdown.
  ~Worker();

  // Takes nothing new, drops what nobody has begun, finishes the rest as far
  // as the timeouts allow, and ends the stream.
  void Shutdown();

  bool connected() const;

 private:
  Worker(Options options, std::unique_ptr<Spool> spool);

  void ConnectLoop();
  // From connecting to the end of the stream; why it ended.
  absl::Status ServeOneStream();
  // UNAVAILABLE is all that gRPC knows of a handshake that fails; what is
  // behind it, where there is more. Of the connecting thread alone.
  absl::Status Explain(const absl::Status& status,
                       const transport::Endpoint& server);
  void WriteLoop(FarmStream& stream);
  void Take(const v1::ServerMessage& message);
  void TakeAck(const v1::Ack& ack);
  void ReportLoop();
  void RetrySpool();
  void Report(const std::string& database_uuid, v1::Result result);
  v1::State ComposeState();
  void Wake();
  // False where the time ran out first.
  bool WaitUntil(const std::function<bool()>& condition,
                 absl::Duration timeout);

  Options options_;
  const std::unique_ptr<Spool> spool_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool no_more_reports_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;       // on our own account
  bool server_drains_ ABSL_GUARDED_BY(mutex_) = false;  // asked to
  bool connected_ ABSL_GUARDED_BY(mutex_) = false;
  bool state_due_ ABSL_GUARDED_BY(mutex_) = false;
  // When a change that is not urgent is told at the latest.
  absl::Duration state_by_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  FarmStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::string database_uuid_ ABSL_GUARDED_BY(mutex_);
  absl::Duration state_interval_ ABSL_GUARDED_BY(mutex_);
  // Leases whose results went out on this stream.
  std::set<std::string> sent_ ABSL_GUARDED_BY(mutex_);
  bool results_due_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<std::string, v1::Result>> reports_
      ABSL_GUARDED_BY(mutex_);
  // Lease ids on their way into the spool, with their attempts.
  std::map<std::string, uint32_t> reporting_ ABSL_GUARDED_BY(mutex_);

  absl::Duration spool_tried_ = -absl::InfiniteDuration();  // reporter alone
  // See Explain: the last error, and what was behind it.
  absl::Status unexplained_, explained_;
  absl::Duration explained_at_ = -absl::InfiniteDuration();  // monotonic

  std::unique_ptr<Pipeline> pipeline_;
  std::thread reporter_;
  std::thread connector_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_WORKER_H_

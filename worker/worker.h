// rpc-worker: one device's connection to the farm.
//
//   stream (reads)  -> leases, cancels -> Pipeline
//   Pipeline        -> results -> Spool (durable) -> stream (writes)
//   stream (reads)  -> acks    -> Spool (forgets)
//
// The stream may break at any time. The pipeline then continues with its
// leases, results wait in the spool, and a new stream with the same boot id
// continues.
#ifndef TILEFARM_WORKER_WORKER_H_
#define TILEFARM_WORKER_WORKER_H_

#include <deque>
#include <functional>
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
#include "worker/artifact_fetcher.h"
#include "worker/pipeline.h"
#include "worker/spool.h"

namespace tilefarm::worker {

class FarmStream;  // worker.cc: one gRPC stream

// All durations of the worker.
struct WorkerTimeouts {
  // The pause between attempts to connect, doubled each time from first to
  // last. Each is shortened at random by up to a half, so that not all workers
  // of a farm reconnect at the same time.
  absl::Duration reconnect_first = absl::Milliseconds(200);
  absl::Duration reconnect_last = absl::Seconds(10);
  // Used if the server does not say.
  absl::Duration state_interval = absl::Seconds(5);
  // Limits at shutdown: for the running candidate, for its acknowledgement, and
  // for the orderly end of the stream. Together much less than ten seconds.
  absl::Duration finish_running = absl::Seconds(5);
  absl::Duration await_acks = absl::Seconds(1);
  absl::Duration end_stream = absl::Seconds(1);
  // A state directory that could not store a result (disk full) is tried again
  // after this; until then the worker takes no new work.
  absl::Duration spool_retry = absl::Seconds(2);
  // Limits for a builder process: to start, and to read a request or to write
  // an answer. After them another one is started. A candidate's own limit
  // counts until the answer begins.
  absl::Duration builder_start = absl::Seconds(30);
  absl::Duration builder_transfer = absl::Seconds(30);
  // A keepalive ping is sent on a connection without traffic for so long; the
  // connection is closed if no answer comes within keepalive_timeout. The
  // server closes connections with more than four pings in its own
  // keepalive_interval.
  absl::Duration keepalive_interval = absl::Seconds(30);
  absl::Duration keepalive_timeout = absl::Seconds(10);
};

// Every member under its own name, for `--timeout KEY=DURATION` and for the
// configuration file. The settings point into `timeouts`.
Settings TimeoutSettings(WorkerTimeouts& timeouts);

// Thread-safe. Owns pipeline, spool and threads.
class Worker {
 public:
  struct Options {
    std::string server;  // HOST:PORT
    transport::ClientSecurity security;
    v1::Hello hello;  // without protocol version and boot id
    std::string state_directory;
    Pipeline::Options pipeline;  // without its callbacks and fingerprint
    WorkerTimeouts timeouts;
  };

  // FailedPrecondition or another error of Spool::Open; errors of
  // transport::CheckEndpoint.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(Options options);
  // Ends without waiting for anything; see Shutdown.
  ~Worker();

  // Takes no new leases, drops those that have not begun, finishes the others
  // as far as the timeouts permit, and ends the stream.
  void Shutdown();

  bool connected() const;

 private:
  Worker(Options options, std::unique_ptr<Spool> spool);

  void ConnectLoop();
  // Runs one stream from connecting to its end, and returns why it ended.
  absl::Status ServeOneStream();
  // gRPC reports every failed handshake as UNAVAILABLE. Returns the cause, if
  // it can be found. Used by the connecting thread alone.
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
  // False: the time is over.
  bool WaitUntil(const std::function<bool()>& condition,
                 absl::Duration timeout);

  Options options_;
  const std::unique_ptr<Spool> spool_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool no_more_reports_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;       // by Shutdown
  bool server_drains_ ABSL_GUARDED_BY(mutex_) = false;  // by the server
  bool connected_ ABSL_GUARDED_BY(mutex_) = false;
  bool state_due_ ABSL_GUARDED_BY(mutex_) = false;
  // The latest time to report a change that is not urgent.
  absl::Duration state_by_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  FarmStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::string database_uuid_ ABSL_GUARDED_BY(mutex_);
  absl::Duration state_interval_ ABSL_GUARDED_BY(mutex_);
  // Leases whose results were sent on this stream.
  std::set<std::string> sent_ ABSL_GUARDED_BY(mutex_);
  bool results_due_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<std::string, v1::Result>> reports_
      ABSL_GUARDED_BY(mutex_);
  // Lease ids and attempts of results that are being written to the spool.
  std::map<std::string, uint32_t> reporting_ ABSL_GUARDED_BY(mutex_);

  absl::Duration spool_tried_ = -absl::InfiniteDuration();  // by reporter only
  // See Explain: the last error, and its cause.
  absl::Status unexplained_, explained_;
  absl::Duration explained_at_ = -absl::InfiniteDuration();  // monotonic

  ArtifactFetcher fetcher_;
  std::unique_ptr<Pipeline> pipeline_;
  std::thread reporter_;
  std::thread connector_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_WORKER_H_

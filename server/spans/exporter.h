// Sends the lives of candidates to a collector, in batches from a thread of its
// own. Nothing else waits for the collector: while it is away, lives wait in a
// queue, and beyond that they are dropped and counted. The log has one line
// when that begins and one when it ends.
#ifndef TILEFARM_SERVER_SPANS_EXPORTER_H_
#define TILEFARM_SERVER_SPANS_EXPORTER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "server/regression/webhook.h"
#include "server/spans/otlp.h"

namespace tilefarm::spans {

struct ExporterOptions {
  // Of the collector, without /v1/traces; empty: nothing is sent.
  std::string url;
  // With lines "Name: value", such as of a token; empty: none.
  std::string headers_file;
  size_t most_waiting = 20'000;  // lives
  size_t batch = 256;
  absl::Duration delay = absl::Seconds(1);  // in which a batch is collected
  absl::Duration attempt_limit = absl::Seconds(10);
  // No answer, 429, 502, 503 and 504 are tried again, as the protocol wants.
  regression::WebhookRetries retries = {.most_attempts = 8,
                                        .first_delay = absl::Seconds(1),
                                        .factor = 2,
                                        .longest_delay = absl::Minutes(1)};
};

// Only the owner may read the file; empty lines and those that begin with # are
// skipped. NotFound, PermissionDenied, InvalidArgument: a line is no header.
absl::StatusOr<std::vector<std::string>> ReadHeaders(const std::string& path);

// The URL and the file. Errors of ReadHeaders; InvalidArgument: the URL is
// none, or has a part after "?" or "#".
absl::Status CheckExporter(const ExporterOptions& options);

struct ExporterFigures {
  int64_t sent = 0, dropped = 0;  // lives
};

// Thread-safe.
class SpanExporter {
 public:
  // Errors of CheckExporter.
  static absl::StatusOr<std::unique_ptr<SpanExporter>> Start(
      ExporterOptions options, Sender sender);
  // Tries once to send what waits, for at most a few seconds.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Does not wait.
  void Add(const std::string& job_id, std::span<const jobs::LoggedLife> lives);
  ExporterFigures figures() const;

 private:
  SpanExporter(ExporterOptions options, std::vector<std::string> headers,
               Sender sender);
  void Main();
  // Lives to send next; empty: it ends.
  std::vector<JobLife> NextBatch();
  void Send(const std::vector<JobLife>& batch);
  // False: it ends.
  bool Sleep(absl::Duration duration);
  // They were sent; with a problem: they are dropped.
  void Count(size_t lives, const std::string& problem);
  // Once for each time that the collector is away.
  void Complain(const std::string& problem);
  // What the collector says of spans that it took in part.
  void ReadAnswer(const std::string& body);

  const ExporterOptions options_;
  const std::vector<std::string> headers_;
  const Sender sender_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<JobLife> waiting_ ABSL_GUARDED_BY(mutex_);
  ExporterFigures figures_ ABSL_GUARDED_BY(mutex_);
  bool full_ ABSL_GUARDED_BY(mutex_) = false;  // and it was said
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> stop_ = false;  // ends_, for a POST that is on its way
  // Used on the thread alone.
  Rng rng_;
  bool complained_ = false;  // since it last worked
  bool refused_ = false;     // it was said that spans are refused
  absl::Duration last_until_ = absl::ZeroDuration();
  std::thread thread_;
};

}  // namespace tilefarm::spans

#endif  // TILEFARM_SERVER_SPANS_EXPORTER_H_

#include "server/spans/exporter.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "transport/http_post.h"

namespace tilefarm::spans {
namespace {

constexpr char kPath[] = "/v1/traces";
constexpr size_t kMostAnswerBytes = size_t{64} << 10;
constexpr size_t kMostMessageBytes = 200;
// Of all attempts together while the server shuts down.
constexpr absl::Duration kLastAttempts = absl::Seconds(2);

std::string UrlOf(const std::string& collector) {
  const bool slash = absl::EndsWith(collector, "/");
  return absl::StrCat(collector.substr(0, collector.size() - (slash ? 1 : 0)),
                      kPath);
}

// OTLP/HTTP, "Retryable response codes", and no answer.
bool IsRetried(int status) {
  return status == 0 || status == 429 || status == 502 || status == 503 ||
         status == 504;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadHeaders(const std::string& path) {
  struct stat info = {};
  std::ifstream file(path);
  if (!file || stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "others may read ", path, ", which may hold a token: chmod 600"));
  }
  std::vector<std::string> headers;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    absl::StripAsciiWhitespace(&line);
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(':');
    const bool printable = std::all_of(line.begin(), line.end(), [](char c) {
      return absl::ascii_isprint(static_cast<unsigned char>(c));
    });
    if (colon == 0 || colon == std::string::npos || !printable ||
        line.find(' ') < colon) {
      // The line may be a token.
      return absl::InvalidArgumentError(absl::StrCat(
          path, ":", number, ": not as in 'Authorization: Bearer TOKEN'"));
    }
    headers.push_back(line);
  }
  return headers;
}

absl::Status CheckExporter(const ExporterOptions& options) {
  TF_RETURN_IF_ERROR(transport::CheckHttpUrl(options.url));
  if (absl::StrContains(options.url, '?') ||
      absl::StrContains(options.url, '#')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the URL is that of a collector, to which ", kPath, " is added"));
  }
  return options.headers_file.empty()
             ? absl::OkStatus()
             : ReadHeaders(options.headers_file).status();
}

absl::StatusOr<std::unique_ptr<SpanExporter>> SpanExporter::Start(
    ExporterOptions options, Sender sender) {
  TF_RETURN_IF_ERROR(CheckExporter(options));
  std::vector<std::string> headers;
  if (!options.headers_file.empty()) {
    TF_ASSIGN_OR_RETURN(headers, ReadHeaders(options.headers_file));
  }
  headers.emplace_back("Content-Type: application/json");
  return absl::WrapUnique(new SpanExporter(
      std::move(options), std::move(headers), std::move(sender)));
}

SpanExporter::SpanExporter(ExporterOptions options,
                           std::vector<std::string> headers, Sender sender)
    : options_(std::move(options)),
      headers_(std::move(headers)),
      sender_(std::move(sender)),
      rng_(std::random_device()()),
      thread_([this] { Main(); }) {}

SpanExporter::~SpanExporter() {
  stop_ = true;  // first, so that a batch of now has the last attempt alone
  {
    MutexLock lock(mutex_);
    ends_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void SpanExporter::Add(const std::string& job_id,
                       std::span<const jobs::LoggedLife> lives) {
  bool overflows = false;
  {
    MutexLock lock(mutex_);
    const size_t room = options_.most_waiting - waiting_.size();
    const size_t taken = std::min(room, lives.size());
    for (const jobs::LoggedLife& life : lives.first(taken)) {
      waiting_.push_back({job_id, life});
    }
    figures_.dropped += static_cast<int64_t>(lives.size() - taken);
    overflows = taken < lives.size() && !full_;
    full_ = full_ || overflows;
    changed_.NotifyAll();
  }
  if (!overflows) return;
  Log(LogLevel::kWarning, "spans",
      absl::StrCat("the spans of ", options_.most_waiting,
                   " candidates wait for the collector; more are dropped"));
}

ExporterFigures SpanExporter::figures() const {
  MutexLock lock(mutex_);
  return figures_;
}

std::vector<JobLife> SpanExporter::NextBatch() {
  MutexLock lock(mutex_);
  while (waiting_.empty() && !ends_) changed_.Wait(mutex_);
  const absl::Duration until = Clock::Real().Monotonic() + options_.delay;
  while (waiting_.size() < options_.batch && !ends_) {
    const absl::Duration left = until - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) break;
    changed_.WaitFor(mutex_, left);
  }
  const size_t count = std::min(options_.batch, waiting_.size());
  std::vector<JobLife> batch(
      std::make_move_iterator(waiting_.begin()),
      std::make_move_iterator(waiting_.begin() + static_cast<long>(count)));
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<long>(count));
  if (waiting_.empty()) full_ = false;
  return batch;
}

bool SpanExporter::Sleep(absl::Duration duration) {
  const absl::Duration until = Clock::Real().Monotonic() + duration;
  MutexLock lock(mutex_);
  while (!ends_) {
    const absl::Duration left = until - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) return true;
    changed_.WaitFor(mutex_, left);
  }
  return false;
}

void SpanExporter::Count(size_t lives, const std::string& problem) {
  const bool sent = problem.empty();
  {
    MutexLock lock(mutex_);
    (sent ? figures_.sent : figures_.dropped) += static_cast<int64_t>(lives);
  }
  if (!sent) return Complain(problem);
  if (!complained_) return;
  complained_ = false;
  Log(LogLevel::kInfo, "spans", "the collector takes spans again");
}

void SpanExporter::Complain(const std::string& problem) {
  if (complained_) return;
  complained_ = true;
  Log(LogLevel::kWarning, "spans",
      absl::StrCat("the collector takes no spans, which wait and may be lost: ",
                   problem));
}

void SpanExporter::ReadAnswer(const std::string& body) {
  const auto json = ParseJson(body);
  if (refused_ || !json.is_object()) return;
  const auto partial = json.find("partialSuccess");
  if (partial == json.end() || !partial->is_object()) return;
  // A 64-bit number is a text in the JSON of protocol buffers.
  const auto rejected = partial->find("rejectedSpans");
  if (rejected == partial->end() || *rejected == 0 || *rejected == "0") return;
  refused_ = true;
  const auto message = partial->find("errorMessage");
  Log(LogLevel::kWarning, "spans",
      absl::StrCat("the collector refuses spans: ",
                   message != partial->end() && message->is_string()
                       ? absl::CHexEscape(message->get<std::string>().substr(
                             0, kMostMessageBytes))
                       : "it does not say why"));
}

void SpanExporter::Send(const std::vector<JobLife>& batch) {
  transport::HttpPost post{.url = UrlOf(options_.url),
                           .headers = headers_,
                           .body = ExportRequest(sender_, batch),
                           .limit = options_.attempt_limit,
                           .most_answer_bytes = kMostAnswerBytes,
                           .stop = &stop_};
  for (int attempts = 1; !stop_; ++attempts) {
    const transport::HttpAnswer answer = transport::Post(post);
    if (answer.ok()) {
      ReadAnswer(answer.body);
      return Count(batch.size(), "");
    }
    if (stop_) break;
    if (!IsRetried(answer.status)) return Count(batch.size(), answer.problem);
    const std::optional<absl::Duration> delay = regression::WebhookRetryDelay(
        attempts, {.status = answer.status, .retry_after = answer.retry_after},
        absl::Now(), rng_.Uniform(), options_.retries);
    if (!delay.has_value()) return Count(batch.size(), answer.problem);
    Complain(answer.problem);
    if (!Sleep(*delay)) break;
  }
  // The last attempt, also of a batch that was on its way: a collector knows
  // spans that come twice by their ids.
  const absl::Duration now = Clock::Real().Monotonic();
  if (last_until_ == absl::ZeroDuration()) last_until_ = now + kLastAttempts;
  if (now >= last_until_) return Count(batch.size(), "the server ends");
  post.limit = last_until_ - now;
  post.stop = nullptr;
  const transport::HttpAnswer answer = transport::Post(post);
  Count(batch.size(), answer.problem);
}

void SpanExporter::Main() {
  while (true) {
    const std::vector<JobLife> batch = NextBatch();
    if (batch.empty()) return;
    Send(batch);
  }
}

}  // namespace tilefarm::spans

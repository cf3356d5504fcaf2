#include "server/services/http_pages.h"

#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace tilefarm::services {
namespace {

// How long an answer about the database is valid, and how long a request waits
// for one.
constexpr absl::Duration kFresh = absl::Seconds(1);
constexpr absl::Duration kPatience = absl::Seconds(2);

int StatusOf(const absl::Status& refused) {
  switch (refused.code()) {
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    default:
      return 403;
  }
}

}  // namespace

// Writes to the database on a thread of its own, so that a disk that hangs does
// not block the other pages. It writes only on request.
class Pages::WriteProbe {
 public:
  explicit WriteProbe(std::function<absl::Status()> write)
      : write_(std::move(write)), thread_([this] { Main(); }) {}
  ~WriteProbe() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  absl::Status Ask() {
    MutexLock lock(mutex_);
    const absl::Duration now = Clock::Real().Monotonic();
    if (last_.has_value() && !wanted_ && now - at_ < kFresh) return *last_;
    // An earlier request has already waited for this answer.
    const bool hangs = wanted_;
    wanted_ = true;
    changed_.NotifyAll();
    while (wanted_ && !hangs) {
      const absl::Duration left = now + kPatience - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) break;
      changed_.WaitFor(mutex_, left);
    }
    if (!wanted_) return *last_;
    return absl::DeadlineExceededError("the database does not answer");
  }

 private:
  void Main() {
    while (true) {
      {
        MutexLock lock(mutex_);
        while (!wanted_ && !stopping_) changed_.Wait(mutex_);
        if (stopping_) return;
      }
      const absl::Status status = write_();
      MutexLock lock(mutex_);
      last_ = status;
      at_ = Clock::Real().Monotonic();
      wanted_ = false;
      changed_.NotifyAll();
    }
  }

  const std::function<absl::Status()> write_;
  Mutex mutex_;
  CondVar changed_;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> last_ ABSL_GUARDED_BY(mutex_);
  absl::Duration at_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

Pages::Pages(PagesOptions options)
    : options_(std::move(options)),
      probe_(std::make_unique<WriteProbe>(options_.write)) {}

Pages::~Pages() = default;

http::Response Pages::Answer(const http::Request& request,
                             const http::Answers& answers) {
  // Checked before anything is looked up, so that a caller without permission
  // cannot tell which pages exist.
  if (options_.gate != nullptr) {
    const absl::Status allowed = options_.gate->Authorize(
        request.path, {.certificate = request.certificate,
                       .authorization = request.authorization});
    if (!allowed.ok()) {
      return http::Refusal(StatusOf(allowed), std::string(allowed.message()));
    }
  }
  if (request.path == "/metrics") {
    ServerFigures figures = options_.figures();
    figures.http_answers = answers;
    return {.content_type = kMetricsContentType, .body = MetricsPage(figures)};
  }
  if (request.path == "/healthz") return Health();
  if (request.path == "/readyz") return Ready();
  return http::Refusal(404, "there are /metrics, /healthz and /readyz");
}

http::Response Pages::Health() const {
  const std::string stuck = options_.stuck();
  if (!stuck.empty()) return http::Refusal(503, stuck);
  return {.body = "ok\n"};
}

http::Response Pages::Ready() {
  http::Response health = Health();
  if (health.status != 200) return health;
  const absl::Status written = probe_->Ask();
  if (!written.ok()) {
    return http::Refusal(
        503, absl::StrCat("the database takes no writes: ", written.message()));
  }
  return health;
}

}  // namespace tilefarm::services

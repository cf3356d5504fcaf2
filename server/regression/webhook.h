// Notifications of regressions: what is sent, how it is signed, and when it is
// sent again. Sending is elsewhere.
//
// A receiver checks
//   Tilefarm-Signature: t=1700000000,v1=HEX
// where HEX is HMAC-SHA-256, under the shared secret, of the time, a full stop
// and the body. The time is part of what is signed, so that an old delivery
// cannot be replayed. Tilefarm-Delivery is the same for all attempts of one
// notification.
#ifndef TILEFARM_SERVER_REGRESSION_WEBHOOK_H_
#define TILEFARM_SERVER_REGRESSION_WEBHOOK_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/regression/report.h"

namespace tilefarm::regression {

inline constexpr char kSignatureHeader[] = "Tilefarm-Signature";
inline constexpr char kDeliveryHeader[] = "Tilefarm-Delivery";

enum class WebhookFormat {
  kSlack,   // {text, blocks}: Slack's incoming webhooks, and what copies them
  kReport,  // {text, blocks, report}
};

// The body, JSON in UTF-8. Slack's limits (50 blocks, 3,000 characters in a
// text) are kept; the worst benchmarks are named, the others counted.
std::string WebhookBody(const Report& report, WebhookFormat format);

// "t=SECONDS,v1=HEX"
std::string WebhookSignature(std::string_view secret, absl::Time now,
                             std::string_view body);
// What a receiver does. Unauthenticated: malformed, wrong, or older or newer
// than `tolerance`.
absl::Status CheckWebhookSignature(std::string_view secret,
                                   std::string_view signature,
                                   std::string_view body, absl::Time now,
                                   absl::Duration tolerance = absl::Minutes(5));

// The outcome of one attempt.
struct WebhookAttempt {
  int status = 0;           // of HTTP; 0: no answer (refused, timed out, cut)
  std::string retry_after;  // the header's value; empty: none
};

struct WebhookRetries {
  int most_attempts = 6;
  absl::Duration first_delay = absl::Seconds(2);
  double factor = 4;
  absl::Duration longest_delay = absl::Minutes(10);
};

// How long to wait after attempt number `attempts` (from 1) failed; nullopt:
// give up. No answer, 408, 425, 429 and 5xx are tried again, other codes are
// not: the request would be refused again. Retry-After is honoured, in seconds
// or as an HTTP date, up to the longest delay. The delays are shortened by up
// to a fifth, by `uniform` in [0, 1), so that notifications do not come in
// step.
std::optional<absl::Duration> WebhookRetryDelay(
    int attempts, const WebhookAttempt& attempt, absl::Time now, double uniform,
    const WebhookRetries& retries = {});

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_WEBHOOK_H_

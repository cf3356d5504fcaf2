// Sends notifications over HTTP.
#ifndef TILEFARM_SERVER_CLI_WEBHOOK_SENDER_H_
#define TILEFARM_SERVER_CLI_WEBHOOK_SENDER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/regression/webhook.h"

namespace tilefarm::cli {

struct WebhookDelivery {
  std::string url;     // http or https
  std::string secret;  // signs the body; empty: not signed
  std::string body;    // JSON
  regression::WebhookRetries retries;
  absl::Duration attempt_limit = absl::Seconds(20);
  // Replaces sleeping in tests.
  std::function<void(absl::Duration)> sleep;
};

// Posts the body until it is taken (2xx). Redirections are not followed, since
// they could lead the body elsewhere. InvalidArgument: no http or https URL;
// Unavailable: not taken after all attempts, with the last answer.
absl::Status Deliver(const WebhookDelivery& delivery);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_WEBHOOK_SENDER_H_

#include "server/cli/webhook_sender.h"

#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "server/farm/random_id.h"
#include "transport/http_post.h"

namespace tilefarm::cli {
namespace {

transport::HttpPost PostOf(const WebhookDelivery& delivery,
                           const std::string& id) {
  transport::HttpPost post{
      .url = delivery.url,
      .headers = {"Content-Type: application/json; charset=utf-8",
                  absl::StrCat(regression::kDeliveryHeader, ": ", id)},
      .body = delivery.body,
      .limit = delivery.attempt_limit};
  if (!delivery.secret.empty()) {
    post.headers.push_back(
        absl::StrCat(regression::kSignatureHeader, ": ",
                     regression::WebhookSignature(delivery.secret, absl::Now(),
                                                  delivery.body)));
  }
  return post;
}

}  // namespace

absl::Status Deliver(const WebhookDelivery& delivery) {
  TF_RETURN_IF_ERROR(transport::CheckHttpUrl(delivery.url));
  const std::string id = farm::RandomId(128);
  std::random_device device;
  Rng rng(device());
  for (int attempts = 1;; ++attempts) {
    // Each attempt is signed with its time.
    const transport::HttpAnswer answer = transport::Post(PostOf(delivery, id));
    if (answer.ok()) return absl::OkStatus();
    const regression::WebhookAttempt attempt{.status = answer.status,
                                             .retry_after = answer.retry_after};
    const std::optional<absl::Duration> delay = regression::WebhookRetryDelay(
        attempts, attempt, absl::Now(), rng.Uniform(), delivery.retries);
    if (!delay.has_value()) {
      return absl::UnavailableError(absl::StrCat(
          "the webhook did not take the notification after ", attempts,
          attempts == 1 ? " attempt: " : " attempts: ", answer.problem));
    }
    if (delivery.sleep) {
      delivery.sleep(*delay);
    } else {
      absl::SleepFor(*delay);
    }
  }
}

}  // namespace tilefarm::cli

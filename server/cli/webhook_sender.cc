#include "server/cli/webhook_sender.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <random>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/rng.h"
#include "server/farm/random_id.h"

namespace tilefarm::cli {
namespace {

constexpr size_t kMostHeaderBytes = 1024;

struct Curl {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Handle = std::unique_ptr<CURL, Curl>;
using Headers = std::unique_ptr<curl_slist, Curl>;

size_t Drop(char* /*data*/, size_t size, size_t count, void* /*into*/) {
  return size * count;
}

// Keeps the value of Retry-After.
size_t TakeHeader(char* data, size_t size, size_t count, void* into) {
  constexpr std::string_view kName = "retry-after:";
  std::string line(data, std::min(size * count, kMostHeaderBytes));
  std::string lower = line;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (lower.compare(0, kName.size(), kName) == 0) {
    const size_t from = line.find_first_not_of(' ', kName.size());
    const size_t to = line.find_last_not_of(" \r\n");
    if (from != std::string::npos && to >= from) {
      *static_cast<std::string*>(into) = line.substr(from, to - from + 1);
    }
  }
  return size * count;
}

void Add(Headers& headers, const std::string& line) {
  curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
  if (longer == nullptr) return;
  headers.release();
  headers.reset(longer);
}

// `*problem`: why there was no answer.
regression::WebhookAttempt Post(const WebhookDelivery& delivery,
                                const std::string& id, std::string* problem) {
  regression::WebhookAttempt attempt;
  const Handle handle(curl_easy_init());
  if (handle == nullptr) {
    *problem = "no memory";
    return attempt;
  }
  Headers headers;
  Add(headers, "Content-Type: application/json; charset=utf-8");
  Add(headers, absl::StrCat(regression::kDeliveryHeader, ": ", id));
  if (!delivery.secret.empty()) {
    Add(headers,
        absl::StrCat(regression::kSignatureHeader, ": ",
                     regression::WebhookSignature(delivery.secret, absl::Now(),
                                                  delivery.body)));
  }
  const auto set = [&](CURLoption option, auto value) {
    curl_easy_setopt(handle.get(), option, value);
  };
  char error[CURL_ERROR_SIZE] = {};
  set(CURLOPT_URL, delivery.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_POSTFIELDSIZE_LARGE,
      static_cast<curl_off_t>(delivery.body.size()));
  set(CURLOPT_POSTFIELDS, delivery.body.data());
  set(CURLOPT_USERAGENT, "tilefarm");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_TIMEOUT_MS,
      static_cast<long>(absl::ToInt64Milliseconds(delivery.attempt_limit)));
  set(CURLOPT_ERRORBUFFER, error);
  set(CURLOPT_WRITEFUNCTION, Drop);
  set(CURLOPT_HEADERFUNCTION, TakeHeader);
  set(CURLOPT_HEADERDATA, &attempt.retry_after);
  const CURLcode code = curl_easy_perform(handle.get());
  if (code != CURLE_OK) {
    *problem = error[0] != '\0' ? error : curl_easy_strerror(code);
    return attempt;
  }
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  attempt.status = static_cast<int>(status);
  *problem = absl::StrCat("it answered ", status);
  return attempt;
}

}  // namespace

absl::Status Deliver(const WebhookDelivery& delivery) {
  if (!absl::StartsWith(delivery.url, "https://") &&
      !absl::StartsWith(delivery.url, "http://")) {
    return absl::InvalidArgumentError(
        "a webhook's URL begins with https:// or http://");
  }
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialized != CURLE_OK) {
    return absl::UnavailableError(curl_easy_strerror(initialized));
  }
  const std::string id = farm::RandomId(128);
  std::random_device device;
  Rng rng(device());
  for (int attempts = 1;; ++attempts) {
    std::string problem;
    const regression::WebhookAttempt attempt = Post(delivery, id, &problem);
    if (attempt.status >= 200 && attempt.status < 300) {
      return absl::OkStatus();
    }
    const std::optional<absl::Duration> delay = regression::WebhookRetryDelay(
        attempts, attempt, absl::Now(), rng.Uniform(), delivery.retries);
    if (!delay.has_value()) {
      return absl::UnavailableError(absl::StrCat(
          "the webhook did not take the notification after ", attempts,
          attempts == 1 ? " attempt: " : " attempts: ", problem));
    }
    if (delivery.sleep) {
      delivery.sleep(*delay);
    } else {
      absl::SleepFor(*delay);
    }
  }
}

}  // namespace tilefarm::cli

#include "transport/http_post.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tilefarm::transport {
namespace {

constexpr size_t kMostHeaderBytes = 1024;

struct Free {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  void operator()(char* text) const { curl_free(text); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

struct Body {
  size_t most_bytes = 0;
  std::string* text = nullptr;
};

// The rest is read and dropped, so that the answer counts.
size_t TakeBody(char* data, size_t size, size_t count, void* into) {
  const Body& body = *static_cast<const Body*>(into);
  const size_t room = body.most_bytes - body.text->size();
  body.text->append(data, std::min(size * count, room));
  return size * count;
}

// Keeps the value of Retry-After.
size_t TakeHeader(char* data, size_t size, size_t count, void* into) {
  absl::string_view line(data, std::min(size * count, kMostHeaderBytes));
  constexpr absl::string_view kName = "retry-after:";
  if (absl::StartsWithIgnoreCase(line, kName)) {
    line.remove_prefix(kName.size());
    *static_cast<std::string*>(into) =
        std::string(absl::StripAsciiWhitespace(line));
  }
  return size * count;
}

int StopIfAsked(void* stop, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(stop)->load() ? 1 : 0;
}

void Add(Owned<curl_slist>& headers, const std::string& line) {
  curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
  if (longer == nullptr) return;
  headers.release();
  headers.reset(longer);
}

}  // namespace

absl::Status CheckHttpUrl(const std::string& url) {
  const Owned<CURLU> parsed(curl_url());
  if (parsed == nullptr) return absl::ResourceExhaustedError("no memory");
  const bool known =
      absl::StartsWith(url, "https://") || absl::StartsWith(url, "http://");
  char* part = nullptr;
  if (!known ||
      curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(parsed.get(), CURLUPART_HOST, &part, 0) != CURLUE_OK) {
    return absl::InvalidArgumentError(
        // Some hold a secret.
        "not the URL of a host that begins with https:// or http://");
  }
  const Owned<char> host(part);
  return absl::OkStatus();
}

HttpAnswer Post(const HttpPost& post) {
  HttpAnswer answer;
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  const Owned<CURL> handle(initialized == CURLE_OK ? curl_easy_init()
                                                   : nullptr);
  if (handle == nullptr) {
    answer.problem = "libcurl does not start";
    return answer;
  }
  Owned<curl_slist> headers;
  for (const std::string& line : post.headers) Add(headers, line);
  Add(headers, "Expect:");  // large bodies do not wait for "100 Continue"
  const auto set = [&](CURLoption option, auto value) {
    curl_easy_setopt(handle.get(), option, value);
  };
  char error[CURL_ERROR_SIZE] = {};
  set(CURLOPT_URL, post.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(post.body.size()));
  set(CURLOPT_POSTFIELDS, post.body.data());
  set(CURLOPT_USERAGENT, "tilefarm");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_TIMEOUT_MS,
      static_cast<long>(absl::ToInt64Milliseconds(post.limit)));
  set(CURLOPT_ERRORBUFFER, error);
  Body body = {post.most_answer_bytes, &answer.body};
  set(CURLOPT_WRITEFUNCTION, TakeBody);
  set(CURLOPT_WRITEDATA, &body);
  set(CURLOPT_HEADERFUNCTION, TakeHeader);
  set(CURLOPT_HEADERDATA, &answer.retry_after);
  if (post.stop != nullptr) {
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, StopIfAsked);
    set(CURLOPT_XFERINFODATA, post.stop);
  }
  const CURLcode code = curl_easy_perform(handle.get());
  if (code != CURLE_OK) {
    answer.problem = error[0] != '\0' ? error : curl_easy_strerror(code);
    return answer;
  }
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  if (!answer.ok()) answer.problem = absl::StrCat("it answered ", status);
  return answer;
}

}  // namespace tilefarm::transport

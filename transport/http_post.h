// One HTTP POST, by libcurl.
#ifndef TILEFARM_TRANSPORT_HTTP_POST_H_
#define TILEFARM_TRANSPORT_HTTP_POST_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tilefarm::transport {

struct HttpPost {
  std::string url;                   // http or https
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  absl::Duration limit = absl::Seconds(20);
  size_t most_answer_bytes = 0;  // of the answer's body that are kept
  // Ends it within a second once true; null: nothing does.
  const std::atomic<bool>* stop = nullptr;
};

struct HttpAnswer {
  int status = 0;           // 0: there was no answer
  std::string retry_after;  // the header's value; empty: there was none
  std::string body;         // its first bytes
  std::string problem;      // why the status is not 2xx
  bool ok() const { return status >= 200 && status < 300; }
};

// InvalidArgument: not the URL of a host by http or https.
absl::Status CheckHttpUrl(const std::string& url);

// Waits for the answer. Redirections are not followed,
// since they could lead the body elsewhere.
HttpAnswer Post(const HttpPost& post);

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_HTTP_POST_H_

#include "tests/fuzz/http_target.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/http/http_request.h"

namespace tilefarm::fuzz {
namespace {

constexpr int kRefusals[] = {400, 403, 405, 411, 413, 431, 505};

const Words& Methods() {
  static const Words words = {"GET", "HEAD", "POST", "get", "PRI", ""};
  return words;
}
const Words& Targets() {
  static const Words words = {"/metrics", "/healthz", "/readyz?x=1",
                              "/",        "*",        "http://a/"};
  return words;
}
const Words& Names() {
  static const Words words = {"Host",           "hOST",   "Authorization",
                              "Content-Length", "Origin", "Transfer-Encoding",
                              "Accept",         ""};
  return words;
}
const Words& Values() {
  static const Words words = {
      "127.0.0.1:9464", "[::1]:80", "Bearer token", "0", "1",
      "chunked",        "null",     "\ta\t",        ""};
  return words;
}

std::string MadeHead(ByteSource& source) {
  std::string head =
      absl::StrCat(AnyText(source, Methods()), " ", AnyText(source, Targets()),
                   source.Chance(16) ? " HTTP/2.0" : " HTTP/1.1", "\r\n");
  if (!source.Chance(32)) absl::StrAppend(&head, "Host: localhost\r\n");
  for (size_t n = source.Below(4); n > 0; --n) {
    absl::StrAppend(&head, AnyText(source, Names()), ": ",
                    AnyText(source, Values()), "\r\n");
  }
  return head + "\r\n";
}

// The number of fields of this name in the head, counted by lines.
int Fields(const std::string& head, absl::string_view name) {
  int count = 0;
  for (absl::string_view line : absl::StrSplit(head, "\r\n")) {
    const size_t colon = line.find(':');
    if (colon != line.npos &&
        absl::EqualsIgnoreCase(line.substr(0, colon), name)) {
      ++count;
    }
  }
  return count;
}

// Checks an accepted request.
std::string Check(const std::string& head, const http::Request& request) {
  if (request.path.empty() || request.path.front() != '/' ||
      !std::all_of(request.path.begin(), request.path.end(), [](char c) {
        return absl::ascii_isgraph(static_cast<unsigned char>(c));
      })) {
    return absl::StrCat("a path: ", absl::CEscape(request.path));
  }
  const bool is_head = absl::StartsWith(head, "HEAD ");
  const bool is_post = absl::StartsWith(head, "POST ");
  if (request.head != is_head || request.post != is_post ||
      !(is_head || is_post || absl::StartsWith(head, "GET "))) {
    return "another method is taken";
  }
  // The lines after the first empty one are not part of the head.
  const std::string lines = head.substr(0, head.find("\r\n\r\n"));
  if (Fields(lines, "host") != 1) return "one Host is demanded";
  if (Fields(lines, "authorization") > 1) return "two credentials are taken";
  // None of the origins that the source makes is this server.
  if (Fields(lines, "origin") > 0) return "another site's page is served";
  if (Fields(lines, "transfer-encoding") > 0) return "chunks are taken";
  if (!is_post && request.body_bytes != 0) return "a body is taken";
  if (request.body_bytes < 0) return "a negative length is taken";
  return "";
}

}  // namespace

std::string HttpHead(ByteSource& source) {
  std::string head = MadeHead(source);
  if (source.Chance(128)) head = Damaged(source, std::move(head)) + "\r\n\r\n";
  http::Request request;
  const http::Response response =
      http::ParseRequest(head, source.Chance(2), request);
  const bool refused = std::find(std::begin(kRefusals), std::end(kRefusals),
                                 response.status) != std::end(kRefusals);
  std::string violation;
  if (response.status == 200) {
    violation = Check(head, request);
  } else if (!refused || response.body.empty()) {
    violation = absl::StrCat("status ", response.status);
  }
  for (const bool only_head : {false, true}) {
    const std::string answer = http::Serialize(response, only_head, true);
    const size_t end = answer.find("\r\n\r\n");
    if (end == answer.npos ||
        answer.substr(end + 4) != (only_head ? "" : response.body)) {
      violation = "an answer is not framed";
    }
  }
  http::IsOurHost(request.host, "farm.example.org");
  return violation.empty() ? ""
                           : absl::StrCat(violation, "\n", absl::CEscape(head));
}

}  // namespace tilefarm::fuzz

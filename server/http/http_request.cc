#include "server/http/http_request.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tilefarm::http {
namespace {

absl::string_view View(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) !=
               std::string_view::npos;
  });
}

bool IsVisible(char c) {
  return absl::ascii_isgraph(static_cast<unsigned char>(c));
}

// Removes and returns the text up to `separator`, or all of it without one.
std::string_view TakeUntil(std::string_view& text, std::string_view separator) {
  const size_t at = text.find(separator);
  const std::string_view first = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size()
                                                  : at + separator.size());
  return first;
}

// "host", "host:80", "[::1]:80".
std::string HostOf(std::string_view value) {
  if (!value.empty() && value.front() == '[') {
    value.remove_prefix(1);
    return std::string(value.substr(0, value.find(']')));
  }
  return std::string(value.substr(0, value.find(':')));
}

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

}  // namespace

Response Refusal(int status, std::string_view why) {
  return {.status = status, .body = absl::StrCat(View(why), "\n")};
}

Response ParseRequest(std::string_view head, Request& request) {
  std::string_view line = TakeUntil(head, "\r\n");
  const std::string_view method = TakeUntil(line, " ");
  const std::string_view target = TakeUntil(line, " ");
  if (!IsToken(method) || target.empty() || target.front() != '/' ||
      !std::all_of(target.begin(), target.end(), IsVisible) ||
      !absl::StartsWith(View(line), "HTTP/")) {
    return Refusal(400, "that is no HTTP request");
  }
  if (line != "HTTP/1.1" && line != "HTTP/1.0") {
    return Refusal(505, "HTTP/1.1 is spoken here");
  }
  request.path = std::string(target.substr(0, target.find('?')));
  int hosts = 0, authorizations = 0;
  bool body = false, origin = false;
  while (true) {
    std::string_view field = TakeUntil(head, "\r\n");
    if (field.empty()) break;
    if (field.find(':') == std::string_view::npos) {
      return Refusal(400, "a header field without a colon");
    }
    const std::string_view name = TakeUntil(field, ":");
    const absl::string_view value = absl::StripAsciiWhitespace(View(field));
    if (!IsToken(name) || std::any_of(value.begin(), value.end(), [](char c) {
          return absl::ascii_iscntrl(c) && c != '\t';
        })) {
      return Refusal(400, "a malformed header field");
    }
    const auto is = [&](const char* other) {
      return absl::EqualsIgnoreCase(View(name), other);
    };
    if (is("host")) {
      ++hosts;
      request.host = HostOf(std::string_view(value.data(), value.size()));
    } else if (is("authorization")) {
      ++authorizations;
      request.authorization = std::string(value);
    } else if (is("origin")) {
      origin = true;
    } else if (is("transfer-encoding") ||
               (is("content-length") && value != "0")) {
      body = true;
    }
  }
  if (hosts != 1 || request.host.empty() || authorizations > 1) {
    return Refusal(400, "one Host it takes, and one Authorization at most");
  }
  if (method != "GET" && method != "HEAD") {
    return Refusal(405, "GET and HEAD are all there is");
  }
  if (body) return Refusal(413, "no page takes a body");
  if (origin) {
    return Refusal(403, "pages of browsers have no business here");
  }
  request.head = method == "HEAD";
  return {};
}

std::string Serialize(const Response& response, bool head) {
  return absl::StrCat(
      "HTTP/1.1 ", response.status, " ", ReasonOf(response.status),
      "\r\nContent-Type: ", response.content_type,
      "\r\nContent-Length: ", response.body.size(),
      "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff",
      response.status == 405 ? "\r\nAllow: GET, HEAD" : "",
      response.status == 401 ? "\r\nWWW-Authenticate: Bearer" : "",
      "\r\nConnection: close\r\n\r\n", head ? "" : response.body);
}

bool IsOurHost(std::string_view host, std::string_view own) {
  const std::string text(host);
  in_addr v4;
  in6_addr v6;
  return absl::EqualsIgnoreCase(text, "localhost") ||
         inet_pton(AF_INET, text.c_str(), &v4) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &v6) == 1 ||
         absl::EqualsIgnoreCase(text, View(own));
}

}  // namespace tilefarm::http

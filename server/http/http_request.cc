#include "server/http/http_request.h"

#include <arpa/inet.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/write.hpp>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tilefarm::http {
namespace {

namespace beast = boost::beast::http;
using Field = beast::field;
using Fields = beast::request<beast::empty_body>;

// Scripts, styles and data come from this server alone, nothing is inline,
// nothing is sent elsewhere, and no page of others may frame it.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'";

// Beast throws where the name of a field is longer than 64 KiB.
constexpr size_t kMostHeadBytes = 60'000;

std::string Text(boost::beast::string_view text) {
  return std::string(text.data(), text.size());
}

bool IsVisible(char c) {
  return absl::ascii_isgraph(static_cast<unsigned char>(c));
}

// "host", "host:80", "[::1]:80"; empty: it is malformed.
std::string HostOf(std::string_view value) {
  std::string_view rest;
  std::string host;
  if (!value.empty() && value.front() == '[') {
    const size_t end = value.find(']');
    if (end == std::string_view::npos) return "";
    host = std::string(value.substr(1, end - 1));
    rest = value.substr(end + 1);
  } else {
    const size_t end = std::min(value.find(':'), value.size());
    host = std::string(value.substr(0, end));
    rest = value.substr(end);
  }
  const bool good =
      std::all_of(host.begin(), host.end(),
                  [](char c) {
                    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                           std::string_view("-._:").find(c) !=
                               std::string_view::npos;
                  }) &&
      (rest.empty() ||
       (rest.front() == ':' &&
        std::all_of(rest.begin() + 1, rest.end(), absl::ascii_isdigit)));
  return good ? host : "";
}

bool Says(const Fields& fields, const char* name, absl::string_view value) {
  return absl::EqualsIgnoreCase(Text(fields[name]), value);
}

// Whether a page of another site makes the browser ask.
bool IsForeign(const Fields& fields, bool tls) {
  const std::string origin = Text(fields[Field::origin]);
  const std::string own =
      absl::StrCat(tls ? "https://" : "http://", Text(fields[Field::host]));
  if (fields.count(Field::origin) > 0 && !absl::EqualsIgnoreCase(origin, own)) {
    return true;
  }
  if (fields.count("Sec-Fetch-Site") == 0 ||
      Says(fields, "Sec-Fetch-Site", "same-origin") ||
      Says(fields, "Sec-Fetch-Site", "none")) {
    return false;
  }
  // A link from elsewhere to a page is welcome; a frame of it is not.
  return fields.method() == beast::verb::post ||
         !Says(fields, "Sec-Fetch-Mode", "navigate") ||
         !Says(fields, "Sec-Fetch-Dest", "document");
}

Response CheckFields(const Fields& fields, bool tls, Request& request) {
  const beast::verb method = fields.method();
  if (fields.count(Field::host) != 1 || request.host.empty() ||
      fields.count(Field::authorization) > 1) {
    return Refusal(400, "one Host it takes, and one Authorization at most");
  }
  if (method != beast::verb::get && method != beast::verb::head &&
      method != beast::verb::post) {
    return Refusal(405, "GET, HEAD and POST are all there is");
  }
  const std::string length = Text(fields[Field::content_length]);
  if (fields.count(Field::transfer_encoding) > 0 ||
      fields.count(Field::content_length) > 1 ||
      (method != beast::verb::post && !length.empty() && length != "0")) {
    return Refusal(413, method == beast::verb::post
                            ? "a body comes whole, not in chunks"
                            : "GET takes no body");
  }
  if (method == beast::verb::post &&
      !absl::SimpleAtoi(length, &request.body_bytes)) {
    return Refusal(411, "a POST says the Content-Length of its body");
  }
  if (IsForeign(fields, tls)) {
    return Refusal(403, "pages of other sites have no business here");
  }
  return {};
}

}  // namespace

Response Refusal(int status, std::string_view why) {
  return {.status = status, .body = std::string(why) + "\n"};
}

Response ParseRequest(std::string_view head, bool tls, Request& request) {
  if (head.size() > kMostHeadBytes) {
    return Refusal(431, "the request's head is too large");
  }
  beast::request_parser<beast::empty_body> parser;
  parser.header_limit(kMostHeadBytes);
  parser.eager(false);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(head.data(), head.size()), error);
  if (error == beast::error::bad_version) {
    const bool other = head.find("HTTP/") != std::string_view::npos;
    return other ? Refusal(505, "HTTP/1.1 is spoken here")
                 : Refusal(400, "that is no HTTP request");
  }
  // Lines that continue the one before are obsolete, and others may read them
  // differently.
  const bool folded = head.find("\r\n ") != std::string_view::npos ||
                      head.find("\r\n\t") != std::string_view::npos;
  if (error || !parser.is_header_done() || folded) {
    return Refusal(
        400, error ? absl::StrCat("that is no HTTP request: ", error.message())
                   : "that is no HTTP request");
  }
  const Fields& fields = parser.get();
  const std::string target = Text(fields.target());
  if (target.empty() || target.front() != '/' ||
      !std::all_of(target.begin(), target.end(), IsVisible)) {
    return Refusal(400, "the target of the request is no path");
  }
  const size_t question = std::min(target.find('?'), target.size());
  request.path = target.substr(0, question);
  if (question < target.size()) request.query = target.substr(question + 1);
  request.host = HostOf(Text(fields[Field::host]));
  request.authorization = Text(fields[Field::authorization]);
  const std::string type = Text(fields[Field::content_type]);
  request.content_type = absl::AsciiStrToLower(
      absl::StripAsciiWhitespace(type.substr(0, type.find(';'))));
  request.if_none_match = Text(fields[Field::if_none_match]);
  request.head = fields.method() == beast::verb::head;
  request.post = fields.method() == beast::verb::post;
  request.keep_alive = fields.keep_alive();
  return CheckFields(fields, tls, request);
}

std::string SerializeHead(const Response& response, int64_t length,
                          bool keep_alive) {
  beast::response<beast::empty_body> head(
      static_cast<beast::status>(response.status), 11);
  head.set(Field::content_type, response.content_type);
  if (length >= 0) head.set(Field::content_length, std::to_string(length));
  head.set(Field::cache_control,
           response.etag.empty() ? "no-store" : "no-cache");
  if (!response.etag.empty()) head.set(Field::etag, response.etag);
  head.set("Content-Security-Policy", kPolicy);
  head.set("X-Content-Type-Options", "nosniff");
  head.set("X-Frame-Options", "DENY");
  head.set("Referrer-Policy", "no-referrer");
  head.set("Cross-Origin-Opener-Policy", "same-origin");
  head.set("Cross-Origin-Resource-Policy", "same-origin");
  if (response.status == 405) head.set(Field::allow, "GET, HEAD, POST");
  if (response.status == 401) head.set(Field::www_authenticate, "Bearer");
  head.set(Field::connection, keep_alive ? "keep-alive" : "close");
  std::ostringstream text;
  text << head.base();
  return text.str();
}

std::string Serialize(const Response& response, bool head, bool keep_alive) {
  std::string text = SerializeHead(
      response, static_cast<int64_t>(response.body.size()), keep_alive);
  if (!head) text += response.body;
  return text;
}

bool IsOurHost(std::string_view host, std::string_view own) {
  const std::string text(host);
  in_addr v4;
  in6_addr v6;
  return absl::EqualsIgnoreCase(text, "localhost") ||
         inet_pton(AF_INET, text.c_str(), &v4) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &v6) == 1 ||
         absl::EqualsIgnoreCase(text, std::string(own));
}

}  // namespace tilefarm::http

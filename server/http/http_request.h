// Parses the head of an HTTP/1 request: the part of the protocol that scrapers
// and probes need. A pure function of the bytes.
#ifndef TILEFARM_SERVER_HTTP_HTTP_REQUEST_H_
#define TILEFARM_SERVER_HTTP_HTTP_REQUEST_H_

#include <string>
#include <string_view>

namespace tilefarm::http {

struct Request {
  bool head = false;          // HEAD: the answer without its body
  std::string path;           // without the query
  std::string host;           // without port and brackets
  std::string authorization;  // empty: none
  // PEM, verified by the handshake; empty: none.
  std::string certificate;
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// A refusal: the status and its reason as the body.
Response Refusal(int status, std::string_view why);

// `head` ends with the empty line. Returns the request, or the answer: 400
// (malformed, no Host or several), 403 (a browser's page asks: it has an
// Origin), 405 (not GET or HEAD), 413 (with a body), 505.
Response ParseRequest(std::string_view head, Request& request);

// The bytes of an answer. The connection is closed after it.
std::string Serialize(const Response& response, bool head);

// Whether the host is an address, localhost, or `own`. Other names may be those
// of web pages that resolve them to our address (DNS rebinding).
bool IsOurHost(std::string_view host, std::string_view own);

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_HTTP_REQUEST_H_

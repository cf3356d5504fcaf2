// The head of an HTTP/1 request: as much of the protocol as a page for scrapers
// and probes takes. Pure: bytes in, request or refusal out.
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

// `head` ends with the empty line. 200 and the request, or what to answer: 400
// (malformed, no or several Host), 403 (a browser's page asks: Origin), 405
// (not GET or HEAD), 413 (with a body), 505.
Response ParseRequest(std::string_view head, Request& request);

// The bytes of an answer after which the connection is closed.
std::string Serialize(const Response& response, bool head);

// Whether a request for this host is meant for us, and not for a name that a
// page in a browser has had pointed here: an address, localhost, or `own`.
bool IsOurHost(std::string_view host, std::string_view own);

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_HTTP_REQUEST_H_

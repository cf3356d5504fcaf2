// One HTTP/1 request and its answer, and the rules for requests that hold
// before any page looks at them. Pure functions of the bytes; Boost.Beast
// parses the syntax.
#ifndef TILEFARM_SERVER_HTTP_HTTP_REQUEST_H_
#define TILEFARM_SERVER_HTTP_HTTP_REQUEST_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tilefarm::http {

struct Request {
  bool head = false;          // HEAD: the answer without its body
  bool post = false;          // POST; otherwise GET or HEAD
  std::string path;           // as sent, without the query
  std::string query;          // after the question mark, as sent
  std::string host;           // without port and brackets
  std::string authorization;  // empty: none
  std::string content_type;   // in lower case, without parameters
  std::string if_none_match;
  // PEM, verified by the handshake; empty: none.
  std::string certificate;
  int64_t body_bytes = 0;  // as announced
  std::string body;        // of a POST
  bool keep_alive = true;  // the client wants to go on with this connection
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Identifies the body. Answers with one may be kept by the browser, which
  // asks each time whether they are still valid; others are never kept.
  std::string etag;
};

// A refusal: the status and its reason as the body.
Response Refusal(int status, std::string_view why);

// `head` ends with the empty line; `tls` says how it came. Returns the request,
// or the answer: 400 (malformed, no Host or several), 403 (a page of another
// site asks, see below), 405 (not GET, HEAD or POST), 411 (a POST without
// length), 413 (a GET with a body, or a body in chunks), 431, 505.
//
// A browser says which page a request comes from. `Origin` must be this very
// server; `Sec-Fetch-Site` must not name another site, except where the user
// follows a link to a page.
Response ParseRequest(std::string_view head, bool tls, Request& request);

// The head of an answer. Every answer carries the content security policy and
// the other headers that keep a browser from believing or leaking anything.
// `length`: of the body; negative: it lasts until the connection ends.
std::string SerializeHead(const Response& response, int64_t length,
                          bool keep_alive);
// The whole answer.
std::string Serialize(const Response& response, bool head, bool keep_alive);

// Whether the host is an address, localhost, or `own`. Other names may be those
// of web pages that resolve them to our address (DNS rebinding).
bool IsOurHost(std::string_view host, std::string_view own);

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_HTTP_REQUEST_H_

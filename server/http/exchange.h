// One request that waits for its answer, which any thread may give at any time.
//
//   handler(std::move(exchange)):
//     exchange->Answer({.body = "..."});            // at once or later
//     auto events = exchange->Stream(on_closed);    // or a stream of events
#ifndef TILEFARM_SERVER_HTTP_EXCHANGE_H_
#define TILEFARM_SERVER_HTTP_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/http_request.h"

namespace tilefarm::http {

// Server-sent events to one browser. Thread-safe; outlives its connection and
// its server.
class EventStream {
 public:
  virtual ~EventStream() = default;
  // `data` has no line feeds. False: the client is gone, or has not read what
  // it got (HttpLimits::unread_bytes), and the connection is closed.
  virtual bool Send(std::string_view event, std::string_view data) = 0;
  // Sends what was given, then closes the connection.
  virtual void Close() = 0;
};

// Numbers of answers so far, by status.
using Answers = std::map<int, int64_t>;

// Given up without an answer, it answers 500. Outlives its connection and its
// server. Not thread-safe, but any thread may have it.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  // Of the whole server.
  virtual Answers answers() const = 0;
  // Once.
  virtual void Answer(Response response) = 0;
  // Once, instead of Answer. Null: there are too many streams, and the client
  // was told so. `closed` is called once, on the server's thread, when the
  // connection is gone; it must not block. It is dropped without a call if the
  // server was gone before the stream began.
  virtual std::shared_ptr<EventStream> Stream(std::function<void()> closed) = 0;
};

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_EXCHANGE_H_

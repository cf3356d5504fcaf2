// One connection of the HTTP port, and what connections share.
#ifndef TILEFARM_SERVER_HTTP_CONNECTION_INTERNAL_H_
#define TILEFARM_SERVER_HTTP_CONNECTION_INTERNAL_H_

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <list>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "server/http/http_server.h"

namespace tilefarm::http {

// All but the constructor is used on the io context's thread alone. Alive while
// it is in the server's list or an operation of it is pending.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void Start() = 0;
  // Closes the socket at once; the connection leaves the list.
  virtual void Abort() = 0;
  // Sends a comment on a stream of events that has nothing else to send.
  virtual void Beat() = 0;
  bool streams() const { return streams_; }

 protected:
  bool streams_ = false;
};

// Exchanges and streams keep it, so that they may outlive the server: what they
// post then never runs.
struct Shared {
  explicit Shared(HttpLimits bounds) : limits(bounds) {}

  boost::asio::io_context io{1};
  const HttpLimits limits;
  std::string own_host;  // of --http
  HttpServer::Handler handler;
  // Used on the io context's thread alone. Oldest first.
  std::list<std::shared_ptr<Connection>> connections;
  int bodies = 0;  // that are being read
  // Open streams, and those that are about to begin.
  std::atomic<int> streams = 0;

  void Count(int status) {
    MutexLock lock(mutex);
    ++answers[status];
  }
  Answers Counts() {
    MutexLock lock(mutex);
    return answers;
  }

  Mutex mutex;
  Answers answers ABSL_GUARDED_BY(mutex);
};

// `tls`: null for plain text.
std::shared_ptr<Connection> MakeConnection(
    std::shared_ptr<Shared> shared, boost::asio::ip::tcp::socket socket,
    std::shared_ptr<boost::asio::ssl::context> tls);

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_CONNECTION_INTERNAL_H_

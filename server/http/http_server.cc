#include "server/http/http_server.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "transport/endpoint.h"

namespace tilefarm::http {
namespace {

constexpr int kBacklog = 128;
// Bytes read of what a client sends after its request.
constexpr size_t kMostDrained = 64 << 10;

constexpr absl::Duration kNoDescriptors = absl::Milliseconds(50);

using Step = TlsSession::Step;

// A file descriptor, closed by the destructor.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

absl::StatusOr<Socket> Listen(const transport::HostAndPort& at) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(at.host.c_str(), absl::StrCat(at.port).c_str(),
                                 &hints, &found);
  if (failed != 0) {
    return absl::UnavailableError(
        absl::StrCat(at.host, ": ", gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> free(found,
                                                                freeaddrinfo);
  Socket socket(::socket(found->ai_family,
                         SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.fd(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket.fd(), kBacklog) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", at.host,
                                               ":", at.port, ": ",
                                               std::strerror(errno)));
  }
  return socket;
}

int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

struct Connection {
  enum class State { kHandshake, kReading, kWriting, kDraining, kClosed };

  Socket socket;
  std::unique_ptr<TlsSession> tls;  // null: plain text
  State state = State::kReading;
  absl::Duration ends;
  short events = POLLIN;  // what it waits for
  std::string in, out;
  size_t sent = 0, drained = 0;
};

Step ReadSome(Connection& connection, char* buffer, size_t capacity,
              size_t& size) {
  size = 0;
  if (connection.tls != nullptr) {
    return connection.tls->Read(buffer, capacity, size);
  }
  const ssize_t got = recv(connection.socket.fd(), buffer, capacity, 0);
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR ? Step::kWantsRead : Step::kFailed;
  }
  size = static_cast<size_t>(got);
  return Step::kDone;
}

Step WriteSome(Connection& connection, std::string_view data, size_t& size) {
  size = 0;
  if (connection.tls != nullptr) {
    return connection.tls->Write(data.data(), data.size(), size);
  }
  const ssize_t put =
      send(connection.socket.fd(), data.data(), data.size(), MSG_NOSIGNAL);
  if (put < 0) {
    return errno == EAGAIN || errno == EINTR ? Step::kWantsWrite
                                             : Step::kFailed;
  }
  size = static_cast<size_t>(put);
  return Step::kDone;
}

class PollingServer : public HttpServer {
 public:
  PollingServer(HttpOptions options, Handler handler)
      : options_(std::move(options)), handler_(std::move(handler)) {}
  ~PollingServer() override {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    while (write(wake_.fd(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
  }

  absl::Status Open() {
    TF_ASSIGN_OR_RETURN(at_, transport::SplitAddress(options_.listen));
    if (options_.tls.has_value()) {
      TF_ASSIGN_OR_RETURN(tls_, TlsServer::Open(*options_.tls));
    }
    TF_ASSIGN_OR_RETURN(listener_, Listen(at_));
    wake_ = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const bool v6 = at_.host.find(':') != std::string::npos;
    address_ = absl::StrCat(v6 ? "[" : "", at_.host, v6 ? "]:" : ":",
                            PortOf(listener_.fd()));
    thread_ = std::thread([this] { Main(); });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  using State = Connection::State;

  void Main() {
    std::vector<pollfd> polled;
    while (true) {
      polled.assign({{wake_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}});
      absl::Duration next = absl::InfiniteDuration();
      for (const Connection& connection : connections_) {
        polled.push_back({connection.socket.fd(), connection.events, 0});
        next = std::min(next, connection.ends);
      }
      const absl::Duration wait = next - Clock::Real().Monotonic();
      const int timeout =
          connections_.empty()
              ? -1
              : static_cast<int>(std::clamp<int64_t>(
                    absl::ToInt64Milliseconds(wait) + 1, 0, 60'000));
      if (poll(polled.data(), polled.size(), timeout) < 0) continue;
      if (polled[0].revents != 0) return;
      size_t index = 2;
      const absl::Duration now = Clock::Real().Monotonic();
      for (Connection& connection : connections_) {
        if (polled[index++].revents != 0) Advance(connection);
        if (now >= connection.ends) connection.state = State::kClosed;
      }
      if (polled[1].revents != 0) AcceptAll(now);
      connections_.remove_if([](const Connection& connection) {
        return connection.state == State::kClosed;
      });
    }
  }

  void AcceptAll(absl::Duration now) {
    // Accepts a few at most before other connections are served.
    for (int i = 0; i < 16; ++i) {
      Socket socket(accept4(listener_.fd(), nullptr, nullptr,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.fd() < 0) {
        // No descriptors are left: closes the oldest connection. If the rest of
        // the process holds them all, waits, so that poll does not spin.
        if (errno == EMFILE || errno == ENFILE) {
          if (connections_.empty()) {
            absl::SleepFor(kNoDescriptors);
          } else {
            connections_.pop_front();
          }
        }
        return;
      }
      if (static_cast<int>(connections_.size()) >=
          options_.limits.connections) {
        connections_.pop_front();
      }
      Connection connection;
      if (tls_ != nullptr) {
        connection.tls = tls_->Accept(socket.fd());
        if (connection.tls == nullptr) continue;
        connection.state = State::kHandshake;
      }
      connection.socket = std::move(socket);
      connection.ends = now + options_.limits.lifetime;
      connections_.push_back(std::move(connection));
    }
  }

  void Advance(Connection& connection) {
    Step step = Step::kDone;
    while (step == Step::kDone && connection.state != State::kClosed) {
      switch (connection.state) {
        case State::kHandshake:
          step = connection.tls->Handshake();
          if (step == Step::kDone) connection.state = State::kReading;
          break;
        case State::kReading:
          step = Read(connection);
          break;
        case State::kWriting:
          step = Write(connection);
          break;
        case State::kDraining:
          step = Drain(connection);
          break;
        case State::kClosed:
          break;
      }
    }
    if (step == Step::kFailed) connection.state = State::kClosed;
    connection.events = step == Step::kWantsWrite ? POLLOUT : POLLIN;
  }

  Step Read(Connection& connection) {
    char buffer[2048];
    size_t size = 0;
    const Step step = ReadSome(connection, buffer, sizeof buffer, size);
    if (step != Step::kDone) return step;
    if (size == 0) return Step::kFailed;  // the client has closed
    connection.in.append(buffer, size);
    const size_t end = connection.in.find("\r\n\r\n");
    if (end == std::string::npos &&
        connection.in.size() <= options_.limits.head_bytes) {
      return Step::kDone;
    }
    Request request;
    Response response =
        end == std::string::npos || end > options_.limits.head_bytes
            ? Refusal(431, "the request's head is too large")
            : ParseRequest(std::string_view(connection.in).substr(0, end + 4),
                           request);
    if (response.status == 200) response = Answer(connection, request);
    ++answers_[response.status];
    connection.out = Serialize(response, request.head);
    connection.in.clear();
    connection.state = State::kWriting;
    return Step::kDone;
  }

  Response Answer(const Connection& connection, Request& request) {
    if (!IsOurHost(request.host, at_.host) &&
        !(connection.tls != nullptr && connection.tls->IsFor(request.host))) {
      return Refusal(403, "that Host is not this server");
    }
    if (connection.tls != nullptr) {
      request.certificate = connection.tls->PeerCertificate();
    }
    return handler_(request, answers_);
  }

  Step Write(Connection& connection) {
    size_t size = 0;
    const Step step = WriteSome(
        connection, std::string_view(connection.out).substr(connection.sent),
        size);
    if (step != Step::kDone) return step;
    connection.sent += size;
    if (connection.sent == connection.out.size()) {
      if (connection.tls != nullptr) connection.tls->SayGoodbye();
      shutdown(connection.socket.fd(), SHUT_WR);
      connection.state = State::kDraining;
    }
    return Step::kDone;
  }

  // Closing with bytes unread would reset the connection before the client has
  // read its answer.
  Step Drain(Connection& connection) {
    char buffer[2048];
    const ssize_t got = recv(connection.socket.fd(), buffer, sizeof buffer, 0);
    if (got < 0) {
      return errno == EAGAIN || errno == EINTR ? Step::kWantsRead
                                               : Step::kFailed;
    }
    connection.drained += static_cast<size_t>(got);
    const bool over = got == 0 || connection.drained > kMostDrained;
    return over ? Step::kFailed : Step::kDone;
  }

  const HttpOptions options_;
  const Handler handler_;
  transport::HostAndPort at_;
  std::unique_ptr<TlsServer> tls_;
  Socket listener_, wake_;
  std::string address_;
  // Used by the thread alone. Oldest first.
  std::list<Connection> connections_;
  Answers answers_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    HttpOptions options, Handler handler) {
  auto server =
      std::make_unique<PollingServer>(std::move(options), std::move(handler));
  TF_RETURN_IF_ERROR(server->Open());
  return server;
}

}  // namespace tilefarm::http

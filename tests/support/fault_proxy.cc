#include "tests/support/fault_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"

namespace tilefarm::testing {
namespace {

// The maximum number of bytes that wait in one direction of a stalled
// connection; beyond that, the sender's socket fills up, as on a real network.
constexpr size_t kMostBytes = 4 << 20;

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

}  // namespace

// One direction.
struct Pipe {
  struct Chunk {
    absl::Duration due;
    std::string bytes;
  };
  int from = -1, to = -1;
  std::deque<Chunk> chunks;
  size_t size = 0;
  bool open = true;  // `from` may send more

  // False if either end is gone.
  bool Read(absl::Duration due) {
    std::string bytes(64 << 10, '\0');
    const ssize_t n = recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return open = false;
    bytes.resize(static_cast<size_t>(n));
    size += bytes.size();
    chunks.push_back({due, std::move(bytes)});
    return true;
  }
  bool Write(absl::Duration now) {
    while (!chunks.empty() && chunks.front().due <= now) {
      std::string& bytes = chunks.front().bytes;
      const ssize_t n =
          send(to, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      size -= static_cast<size_t>(n);
      bytes.erase(0, static_cast<size_t>(n));
      if (!bytes.empty()) return true;
      chunks.pop_front();
    }
    return true;
  }
};

struct FaultProxy::Connection {
  int client = -1, server = -1;
  Pipe to_server, to_client;
  ~Connection() {
    close(client);
    close(server);
  }
};

FaultProxy::FaultProxy(std::string server) : server_(std::move(server)) {
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  TF_CHECK(bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  TF_CHECK(listen(listen_fd_, 64) == 0);
  getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size);
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  TF_CHECK(pipe2(wake_, O_CLOEXEC | O_NONBLOCK) == 0);
  thread_ = std::thread([this] { Main(); });
}

FaultProxy::~FaultProxy() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  Wake();
  thread_.join();
  close(listen_fd_);
  close(wake_[0]);
  close(wake_[1]);
}

void FaultProxy::Wake() {
  const char byte = 0;
  (void)!write(wake_[1], &byte, 1);
}

void FaultProxy::SetMode(Mode mode) {
  MutexLock lock(mutex_);
  mode_ = mode;
  Wake();
}

void FaultProxy::SetDelay(absl::Duration delay) {
  MutexLock lock(mutex_);
  delay_ = delay;
  Wake();
}

void FaultProxy::Cut() {
  MutexLock lock(mutex_);
  cut_ = true;
  Wake();
}

int FaultProxy::accepted() const {
  MutexLock lock(mutex_);
  return accepted_;
}

void FaultProxy::Accept() {
  const int client = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address =
      Loopback(std::atoi(server_.c_str() + server_.rfind(':') + 1));
  if (connect(server, reinterpret_cast<const sockaddr*>(&address),
              sizeof address) != 0) {
    close(client);
    close(server);
    return;
  }
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  auto connection = std::make_unique<Connection>();
  connection->client = client;
  connection->server = server;
  connection->to_server = {.from = client, .to = server};
  connection->to_client = {.from = server, .to = client};
  connections_.push_back(std::move(connection));
  MutexLock lock(mutex_);
  ++accepted_;
}

bool FaultProxy::Move(Connection& connection, short client_events,
                      short server_events) {
  Mode mode;
  absl::Duration delay;
  {
    MutexLock lock(mutex_);
    mode = mode_;
    delay = delay_;
  }
  const absl::Duration now = Clock::Real().Monotonic();
  const bool to_server = mode == Mode::kPass || mode == Mode::kToServer;
  const bool to_client = mode == Mode::kPass || mode == Mode::kToClient;
  bool alive = true;
  if (to_server && client_events != 0) {
    alive &= connection.to_server.Read(now + delay);
  }
  if (to_client && server_events != 0) {
    alive &= connection.to_client.Read(now + delay);
  }
  if (to_server) alive &= connection.to_server.Write(now);
  if (to_client) alive &= connection.to_client.Write(now);
  return alive;
}

void FaultProxy::Main() {
  for (;;) {
    Mode mode;
    bool delayed;
    {
      MutexLock lock(mutex_);
      if (ending_) return;
      mode = mode_;
      delayed = delay_ > absl::ZeroDuration();
      if (cut_) connections_.clear();
      cut_ = false;
    }
    std::vector<pollfd> fds = {{wake_[0], POLLIN, 0}, {listen_fd_, POLLIN, 0}};
    bool waiting = delayed;
    const auto wanted = [&](const Pipe& pipe, const Pipe& other, bool reads,
                            bool writes) {
      short events = 0;
      if (reads && pipe.size < kMostBytes) events |= POLLIN;
      if (writes && !other.chunks.empty()) waiting = true;
      return events;
    };
    for (const auto& one : connections_) {
      const bool up = mode == Mode::kPass || mode == Mode::kToServer;
      const bool down = mode == Mode::kPass || mode == Mode::kToClient;
      // A stalled socket is not polled, because otherwise the proxy would
      // detect its end.
      const short client = wanted(one->to_server, one->to_client, up, down);
      const short server = wanted(one->to_client, one->to_server, down, up);
      fds.push_back({client == 0 ? -1 : one->client, client, 0});
      fds.push_back({server == 0 ? -1 : one->server, server, 0});
    }
    poll(fds.data(), fds.size(), waiting ? 5 : -1);
    char bytes[64];
    while (read(wake_[0], bytes, sizeof bytes) > 0) {
    }
    size_t i = 2;
    for (auto it = connections_.begin(); it != connections_.end(); i += 2) {
      it = Move(**it, fds[i].revents, fds[i + 1].revents)
               ? std::next(it)
               : connections_.erase(it);
    }
    if (fds[1].revents != 0) Accept();
  }
}

}  // namespace tilefarm::testing

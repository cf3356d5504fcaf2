#include "tests/support/http_client.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace tilefarm::testing {

RawConnection::RawConnection(const std::string& address) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int port = std::atoi(address.substr(address.rfind(':') + 1).c_str());
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    close(fd_);
    fd_ = -1;
  }
}

RawConnection::~RawConnection() {
  if (fd_ >= 0) close(fd_);
}

bool RawConnection::Send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t put =
        send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (put <= 0) return false;
    sent += static_cast<size_t>(put);
  }
  return true;
}

std::string RawConnection::ReadSome() {
  constexpr int kPatienceMilliseconds = 60'000;
  pollfd polled = {fd_, POLLIN, 0};
  if (poll(&polled, 1, kPatienceMilliseconds) <= 0) return "";
  char buffer[4096];
  const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
  return got <= 0 ? "" : std::string(buffer, static_cast<size_t>(got));
}

std::string RawConnection::ReadAll(absl::Duration limit) {
  const absl::Duration end = Clock::Real().Monotonic() + limit;
  std::string all;
  while (true) {
    const absl::Duration left = end - Clock::Real().Monotonic();
    if (left <= absl::ZeroDuration()) return all;
    pollfd polled = {fd_, POLLIN, 0};
    const int wait = static_cast<int>(
        std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, 1000));
    if (poll(&polled, 1, wait) <= 0) continue;
    char buffer[4096];
    const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
    if (got <= 0) return all;
    all.append(buffer, static_cast<size_t>(got));
  }
}

std::string Exchange(const std::string& address, const std::string& bytes) {
  RawConnection connection(address);
  if (connection.fd() < 0) return "";
  connection.Send(bytes);
  return connection.ReadAll();
}

std::string HttpGet(const std::string& address, const std::string& path,
                    const std::string& host, const std::string& lines) {
  return Exchange(address,
                  absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", host,
                               "\r\nConnection: close\r\n", lines, "\r\n"));
}

}  // namespace tilefarm::testing

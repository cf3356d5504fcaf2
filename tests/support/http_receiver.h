// An HTTP server on loopback for what programs post.
#ifndef TILEFARM_TESTS_SUPPORT_HTTP_RECEIVER_H_
#define TILEFARM_TESTS_SUPPORT_HTTP_RECEIVER_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tilefarm::testing {

// Takes a request for each of its answers: the first line and further headers,
// each with its end of line, and perhaps an empty line and a body; or one of
// kCloses and kStalls.
class Receiver {
 public:
  // Ends the connection instead.
  static constexpr char kCloses[] = "closes";
  // Does not answer, and ends the connection with the receiver.
  static constexpr char kStalls[] = "stalls";

  explicit Receiver(std::vector<std::string> answers)
      : answers_(std::move(answers)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address),
              0);
    EXPECT_EQ(listen(fd_, 8), 0);
    socklen_t size = sizeof address;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ =
        "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/hook";
    thread_ = std::thread([this] { Serve(); });
  }
  // Waits for no more requests.
  ~Receiver() {
    if (thread_.joinable()) shutdown(fd_, SHUT_RDWR);
    Join();
  }
  const std::string& url() const { return url_; }
  // How many requests came so far.
  int taken() const { return taken_; }
  // The requests, once all answers are given.
  const std::vector<std::string>& requests() {
    Join();
    return requests_;
  }

 private:
  void Join() {
    if (!thread_.joinable()) return;
    thread_.join();
    close(fd_);
    for (const int client : stalled_) close(client);
  }
  void Serve() {
    for (const std::string& answer : answers_) {
      const int client = accept(fd_, nullptr, nullptr);
      if (client < 0) return;  // the receiver ends
      std::string request;
      char buffer[4096];
      size_t wanted = std::string::npos;
      while (wanted == std::string::npos || request.size() < wanted) {
        const ssize_t n = read(client, buffer, sizeof buffer);
        if (n <= 0) break;
        request.append(buffer, static_cast<size_t>(n));
        const size_t end = request.find("\r\n\r\n");
        const size_t length = request.find("Content-Length: ");
        if (end != std::string::npos && length != std::string::npos) {
          wanted = end + 4 +
                   std::strtoul(request.c_str() + length + 16, nullptr, 10);
        }
      }
      requests_.push_back(request);
      ++taken_;
      if (answer == kCloses) {
        close(client);
        continue;
      }
      if (answer == kStalls) {
        stalled_.push_back(client);
        continue;
      }
      const size_t blank = answer.find("\r\n\r\n");
      const std::string body =
          blank == std::string::npos ? "" : answer.substr(blank + 4);
      const std::string reply =
          "HTTP/1.1 " +
          (blank == std::string::npos ? answer : answer.substr(0, blank + 2)) +
          "Content-Length: " + std::to_string(body.size()) +
          "\r\nConnection: close\r\n\r\n" + body;
      EXPECT_EQ(write(client, reply.data(), reply.size()),
                static_cast<ssize_t>(reply.size()));
      close(client);
    }
  }

  const std::vector<std::string> answers_;
  int fd_ = -1;
  std::string url_;
  std::vector<std::string> requests_;
  std::vector<int> stalled_;
  std::atomic<int> taken_ = 0;
  std::thread thread_;
};

inline std::string HeaderOf(const std::string& request,
                            const std::string& name) {
  const size_t at = request.find(name + ": ");
  if (at == std::string::npos) return "";
  const size_t from = at + name.size() + 2;
  return request.substr(from, request.find("\r\n", from) - from);
}

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SUPPORT_HTTP_RECEIVER_H_

// The HTTP server: which clients it serves while others misbehave.
#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "tests/support/http_client.h"

namespace tilefarm::http {
namespace {

using ::testing::EndsWith;
using testing::Exchange;
using ::testing::HasSubstr;
using testing::HttpGet;
using ::testing::Not;
using testing::RawConnection;
using ::testing::StartsWith;

constexpr char kGet[] = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpLimits limits) {
    auto server =
        HttpServer::Start({.listen = "127.0.0.1:0", .limits = limits},
                          [this](std::unique_ptr<http::Exchange> exchange) {
                            Handle(std::move(exchange));
                          });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Handle(std::unique_ptr<http::Exchange> exchange) {
    const Request request = exchange->request();
    MutexLock lock(mutex_);
    if (request.path == "/events") {
      streams_.push_back(exchange->Stream([this] { ++closed_; }));
    } else if (request.path == "/late") {
      late_.push_back(std::move(exchange));
    } else if (request.path == "/count") {
      exchange->Answer({.body = absl::StrCat(exchange->answers()[200])});
    } else if (request.path != "/never") {
      exchange->Answer(
          {.body = absl::StrCat("page ", request.path, request.body, "\n")});
    }
  }
  std::string Get() { return HttpGet(server_->address(), "/a"); }
  bool Serves() { return Get().find("\r\n\r\npage /a\n") != std::string::npos; }

  std::shared_ptr<EventStream> FirstStream() {
    MutexLock lock(mutex_);
    return streams_.empty() ? nullptr : streams_.front();
  }
  // Waits without a limit of its own: the test has one.
  template <typename Condition>
  static void Until(Condition condition) {
    while (!condition()) absl::SleepFor(absl::Milliseconds(2));
  }

  Mutex mutex_;
  std::vector<std::shared_ptr<EventStream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<http::Exchange>> late_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> closed_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAndClosesWhereThatIsAskedFor) {
  Start({});
  const std::string answer = Get();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 8\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  const std::string head = Exchange(server_->address(),
                                    "HEAD /a HTTP/1.1\r\nHost: localhost\r\n"
                                    "Connection: close\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("\r\nContent-Length: 8\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("page")));
  EXPECT_THAT(HttpGet(server_->address(), "/a", "evil.example.org"),
              StartsWith("HTTP/1.1 403 "));
  // Byte by byte is accepted, too.
  RawConnection slow(server_->address());
  for (const char c : std::string("GET /a HTTP/1.1\r\nHost: ::1\r\n\r\n")) {
    ASSERT_TRUE(slow.Send(std::string(1, c)));
  }
  EXPECT_THAT(slow.ReadAll(), StartsWith("HTTP/1.1 4"));  // "::1" has colons
  // A second server cannot use the port.
  EXPECT_EQ(HttpServer::Start({.listen = server_->address()}, nullptr)
                .status()
                .code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(HttpServerTest, AConnectionTakesSeveralRequests) {
  Start({});
  const std::string answers = Exchange(
      server_->address(), absl::StrCat(kGet,
                                       "POST /b HTTP/1.1\r\nHost: localhost\r\n"
                                       "Content-Length: 5\r\n\r\n body",
                                       "GET /c HTTP/1.1\r\nHost: localhost\r\n"
                                       "Connection: close\r\n\r\n"));
  const size_t a = answers.find("page /a\n"),
               b = answers.find("page /b body\n");
  ASSERT_NE(a, std::string::npos) << answers;
  ASSERT_NE(b, std::string::npos) << answers;
  EXPECT_LT(a, b);
  EXPECT_LT(b, answers.find("page /c\n"));
  EXPECT_THAT(HttpGet(server_->address(), "/count"), EndsWith("\r\n\r\n3"));
}

TEST_F(HttpServerTest, AnIdleConnectionEnds) {
  Start({.idle = absl::Milliseconds(50)});
  RawConnection idle(server_->address());
  ASSERT_TRUE(idle.Send(kGet));
  EXPECT_THAT(idle.ReadAll(), HasSubstr("Connection: keep-alive"));
}

TEST_F(HttpServerTest, AnAnswerMayComeLaterOrNotAtAll) {
  Start({});
  EXPECT_THAT(HttpGet(server_->address(), "/never"),
              StartsWith("HTTP/1.1 500 "));
  RawConnection waits(server_->address());
  ASSERT_TRUE(
      waits.Send("GET /late HTTP/1.1\r\nHost: localhost\r\n"
                 "Connection: close\r\n\r\n"));
  EXPECT_TRUE(Serves());
  Until([&] {
    MutexLock lock(mutex_);
    return !late_.empty();
  });
  {
    MutexLock lock(mutex_);
    late_.front()->Answer({.body = "at last\n"});
  }
  EXPECT_THAT(waits.ReadAll(), HasSubstr("\r\n\r\nat last\n"));
}

TEST_F(HttpServerTest, ExchangesAndStreamsMayOutliveTheServer) {
  Start({});
  RawConnection first(server_->address()), second(server_->address());
  ASSERT_TRUE(first.Send("GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  ASSERT_TRUE(second.Send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  Until([&] {
    MutexLock lock(mutex_);
    return !late_.empty() && !streams_.empty();
  });
  server_.reset();
  EXPECT_EQ(closed_, 1);
  EXPECT_FALSE(FirstStream()->Send("e", "x"));
  MutexLock lock(mutex_);
  late_.front()->Answer({.body = "too late\n"});
}

TEST_F(HttpServerTest, WhatIsTooLargeIsRefusedAndReadNoFurther) {
  Start({.head_bytes = 1000, .body_bytes = 100});
  EXPECT_THAT(Exchange(server_->address(),
                       "GET / HTTP/1.1\r\nX: " + std::string(4000, 'x')),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Exchange(server_->address(),
                       "POST / HTTP/1.1\r\nHost: localhost\r\n"
                       "Content-Length: 101\r\n\r\nx"),
              StartsWith("HTTP/1.1 413 "));
  RawConnection flood(server_->address());
  const std::string block(1 << 16, 'x');
  // This ends, since the server closes after its answer.
  for (int i = 0; i < 10000 && flood.Send(block); ++i) {
  }
  EXPECT_TRUE(Serves());
}

TEST_F(HttpServerTest, FewBodiesAreReadAtTheSameTime) {
  Start({.bodies = 2, .lifetime = absl::Minutes(10)});
  const std::string post =
      "POST /b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n";
  auto one = std::make_unique<RawConnection>(server_->address());
  RawConnection two(server_->address());
  ASSERT_TRUE(one->Send(post));
  ASSERT_TRUE(two.Send(post));
  // The two may have been read or not.
  Until([&] {
    return absl::StartsWith(Exchange(server_->address(), post),
                            "HTTP/1.1 503 ");
  });
  EXPECT_TRUE(Serves());
  one.reset();  // makes room
  const std::string whole = absl::StrCat(
      "POST /b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
      "Connection: close\r\n\r\nx");
  Until([&] {
    return absl::StartsWith(Exchange(server_->address(), whole),
                            "HTTP/1.1 200 ");
  });
}

TEST_F(HttpServerTest, SlowAndSilentClientsHoldUpNobody) {
  Start({.connections = 8, .lifetime = absl::Minutes(10)});
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(std::make_unique<RawConnection>(server_->address()));
    ASSERT_GE(idle.back()->fd(), 0);
    idle.back()->Send(i % 2 == 0 ? "" : "GET /");
    if (i % 10 == 9) {
      EXPECT_TRUE(Serves());
    }
  }
  // The oldest connections were closed: there are eight places.
  EXPECT_EQ(idle.front()->ReadAll(), "");
}

TEST_F(HttpServerTest, AConnectionHasItsTimeAndNotMore) {
  Start({.lifetime = absl::Milliseconds(200)});
  RawConnection trickle(server_->address());
  // This ends, however often a byte arrives.
  int sent = 0;
  while (trickle.Send("x") && ++sent < 3000)
    absl::SleepFor(absl::Milliseconds(10));
  EXPECT_LT(sent, 3000);
  EXPECT_TRUE(Serves());
}

TEST_F(HttpServerTest, GarbageHarmsNobody) {
  Start({.lifetime = absl::Seconds(1)});
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    std::string bytes;
    for (uint64_t n = rng.Below(3000); n > 0; --n) {
      bytes.push_back(static_cast<char>(rng.Below(256)));
    }
    RawConnection connection(server_->address());
    connection.Send(bytes);  // then disconnect, answered or not
  }
  EXPECT_TRUE(Serves()) << "seed 5";
}

constexpr char kEvents[] = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";

TEST_F(HttpServerTest, AStreamSendsEventsUntilOneSideCloses) {
  Start({.heartbeat = absl::Milliseconds(20)});
  RawConnection client(server_->address());
  ASSERT_TRUE(client.Send(kEvents));
  Until([&] { return FirstStream() != nullptr; });
  EXPECT_TRUE(FirstStream()->Send("job", "{}"));
  EXPECT_TRUE(FirstStream()->Send("job", "[1]"));
  FirstStream()->Close();
  const std::string all = client.ReadAll();
  EXPECT_THAT(all, HasSubstr("\r\nContent-Type: text/event-stream\r\n"));
  EXPECT_THAT(all, HasSubstr("event: job\ndata: {}\n\n"
                             "event: job\ndata: [1]\n\n"));
  Until([&] { return closed_ == 1; });
  EXPECT_FALSE(FirstStream()->Send("job", "late"));
}

TEST_F(HttpServerTest, AClientThatIsGoneIsFound) {
  Start({});
  auto client = std::make_unique<RawConnection>(server_->address());
  ASSERT_TRUE(client->Send(kEvents));
  Until([&] { return FirstStream() != nullptr; });
  client.reset();
  Until([&] { return closed_ == 1; });
  EXPECT_FALSE(FirstStream()->Send("job", "{}"));
}

TEST_F(HttpServerTest, AClientThatDoesNotReadLosesItsStream) {
  Start({});
  RawConnection client(server_->address());
  ASSERT_TRUE(client.Send(kEvents));
  Until([&] { return FirstStream() != nullptr; });
  const std::string block(1 << 18, 'x');
  Until([&] { return !FirstStream()->Send("job", block); });
  Until([&] { return closed_ == 1; });
  EXPECT_TRUE(Serves());
}

TEST_F(HttpServerTest, StreamsAreCountedAndSurviveAFlood) {
  Start({.connections = 6, .streams = 2, .lifetime = absl::Minutes(10)});
  std::vector<std::unique_ptr<RawConnection>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<RawConnection>(server_->address()));
    ASSERT_TRUE(clients.back()->Send(kEvents));
    Until([&] {
      MutexLock lock(mutex_);
      return streams_.size() == clients.size();
    });
  }
  EXPECT_THAT(Exchange(server_->address(),
                       "GET /events HTTP/1.1\r\nHost: localhost\r\n"
                       "Connection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 503 "));
  for (int i = 0; i < 30; ++i) {
    clients.push_back(std::make_unique<RawConnection>(server_->address()));
    clients.back()->Send("GET /");
  }
  EXPECT_TRUE(Serves());
  EXPECT_EQ(closed_, 0);
  EXPECT_TRUE(FirstStream()->Send("job", "{}"));
  clients.erase(clients.begin());  // a place for another one
  Until([&] { return closed_ == 1; });
  RawConnection next(server_->address());
  ASSERT_TRUE(next.Send(kEvents));
  Until([&] {
    MutexLock lock(mutex_);
    return streams_.size() == 4 && streams_.back() != nullptr;
  });
}

}  // namespace
}  // namespace tilefarm::http

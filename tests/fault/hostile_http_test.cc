// No client of the HTTP port can harm the server.
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/fault/hostile_client_fixture.h"
#include "tests/support/http_client.h"

namespace tilefarm::testing {
namespace {

using ::testing::StartsWith;

class HostileHttpTest : public HostileClientFixture {
 protected:
  void ExpectPages() {
    EXPECT_THAT(HttpGet(http_, "/healthz"), StartsWith("HTTP/1.1 200 "));
    // What hostile clients asked for may still wait; then this is refused, but
    // not for long.
    const absl::Time end = absl::Now() + absl::Seconds(30);
    std::string answer = HttpGet(http_, "/metrics");
    while (answer.starts_with("HTTP/1.1 503 ") && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(20));
      answer = HttpGet(http_, "/metrics");
    }
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  }
};

TEST_F(HostileHttpTest, EndlessAndDamagedRequestsAreCutOff) {
  const std::string mega(1 << 20, 'x');
  for (const std::string& bytes :
       {std::string("GET /") + mega + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + mega + "\r\n\r\n",
        std::string(1 << 20, '\n'), std::string(1 << 20, '\0'), mega,
        std::string("POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
                    "Content-Length: 1000000000\r\n\r\n") +
            mega,
        std::string("GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
                    "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n") +
            mega,
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}) {
    RawConnection connection(http_);
    ASSERT_GE(connection.fd(), 0);
    connection.Send(bytes);
    const std::string answer = connection.ReadAll(absl::Seconds(20));
    EXPECT_THAT(answer, ::testing::Not(StartsWith("HTTP/1.1 200 ")));
  }
  ExpectPages();
}

TEST_F(HostileHttpTest, ConnectionsThatSayNothingMakeRoomForOthers) {
  std::vector<std::unique_ptr<RawConnection>> silent;
  for (int i = 0; i < 500; ++i) {
    silent.push_back(std::make_unique<RawConnection>(http_));
    if (i % 2 == 0) silent.back()->Send("GET /metrics HTTP/1.1\r\nHost: lo");
  }
  ExpectPages();
  // Clients that do not read the answer.
  for (int i = 0; i < 200; ++i) {
    silent.push_back(std::make_unique<RawConnection>(http_));
    silent.back()->Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  ExpectPages();
  silent.clear();
}

TEST_F(HostileHttpTest, RepeatedRequestsCostNothingThatStays) {
  std::string many;
  for (int i = 0; i < 50; ++i) {
    many += "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  const std::string last =
      "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  for (int i = 0; i < 500; ++i) {
    EXPECT_THAT(Exchange(http_, i % 10 == 0 ? many + last : last),
                StartsWith("HTTP/1.1 200 "));
  }
  ExpectPages();
}

}  // namespace
}  // namespace tilefarm::testing

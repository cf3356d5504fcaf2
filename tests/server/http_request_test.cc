// Which requests the HTTP port accepts, whoever sends them.
#include "server/http/http_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"

namespace tilefarm::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

int StatusOf(const std::string& head, bool tls = false) {
  Request request;
  return ParseRequest(head + "\r\n", tls, request).status;
}

TEST(HttpRequestTest, TakesGetHeadAndPostWithOneHost) {
  Request request;
  ASSERT_EQ(ParseRequest("GET /metrics?x=1 HTTP/1.1\r\nhOsT: [::1]:80\r\n"
                         "Authorization:  Bearer t \r\nX: \r\n\r\n",
                         false, request)
                .status,
            200);
  EXPECT_FALSE(request.head);
  EXPECT_FALSE(request.post);
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_EQ(request.query, "x=1");
  EXPECT_EQ(request.host, "::1");
  EXPECT_EQ(request.authorization, "Bearer t");
  EXPECT_TRUE(request.keep_alive);
  request = {};
  ASSERT_EQ(ParseRequest("HEAD / HTTP/1.0\r\nHost: a:1\r\n\r\n", false, request)
                .status,
            200);
  EXPECT_TRUE(request.head);
  EXPECT_EQ(request.host, "a");
  EXPECT_FALSE(request.keep_alive);
  request = {};
  ASSERT_EQ(ParseRequest("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n"
                         "Content-Type: Application/JSON; charset=utf-8\r\n"
                         "Connection: close\r\n\r\n",
                         false, request)
                .status,
            200);
  EXPECT_TRUE(request.post);
  EXPECT_EQ(request.body_bytes, 12);
  EXPECT_EQ(request.content_type, "application/json");
  EXPECT_FALSE(request.keep_alive);
}

TEST(HttpRequestTest, RefusesEverythingElse) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost:\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a/b\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a:8a\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: [::1\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\n folded: x\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n"), 400);
  EXPECT_EQ(StatusOf("GET http://a/ HTTP/1.1\r\nHost: a\r\n"), 400);
  EXPECT_EQ(StatusOf("\x16\x03\x01\x02"), 400);
  EXPECT_EQ(StatusOf("PRI * HTTP/2.0\r\n"), 505);
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\nHost: a\r\n"), 505);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nHost: a\r\n"), 405);
  EXPECT_EQ(StatusOf("OPTIONS / HTTP/1.1\r\nHost: a\r\n"), 405);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"),
            413);
  EXPECT_EQ(
      StatusOf("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"),
      413);
  EXPECT_EQ(
      StatusOf("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"),
      413);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: a\r\n"), 411);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n"),
            400);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: a\r\n"
                     "Content-Length: 99999999999999999999\r\n"),
            400);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: a\r\n"
                     "Content-Length: 1\r\nContent-Length: 2\r\n"),
            400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\n" +
                     std::string(100'000, 'x') + ": y\r\n"),
            431);
}

TEST(HttpRequestTest, PagesOfOtherSitesAreRefused) {
  const std::string get = "GET / HTTP/1.1\r\nHost: a:80\r\n";
  const std::string post =
      "POST / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 1\r\n";
  for (const std::string& head : {get, post}) {
    EXPECT_EQ(StatusOf(head + "Origin: http://a:80\r\n"), 200);
    EXPECT_EQ(StatusOf(head + "Origin: https://a:80\r\n", true), 200);
    for (const char* other :
         {"http://b", "http://a", "http://a:81", "https://a:80", "null", "",
          "http://a:80.evil.example.org"}) {
      EXPECT_EQ(StatusOf(head + "Origin: " + other + "\r\n"), 403) << other;
    }
    EXPECT_EQ(StatusOf(head + "Origin: http://a:80\r\n", true), 403);
    EXPECT_EQ(StatusOf(head + "Sec-Fetch-Site: same-origin\r\n"), 200);
    EXPECT_EQ(StatusOf(head + "Sec-Fetch-Site: none\r\n"), 200);
    EXPECT_EQ(StatusOf(head + "Sec-Fetch-Site: same-site\r\n"), 403);
    EXPECT_EQ(StatusOf(head + "Sec-Fetch-Site: cross-site\r\n"), 403);
  }
  // A link on another site leads to a page, but not into a frame of it.
  const std::string follows =
      "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
  EXPECT_EQ(StatusOf(get + follows + "Sec-Fetch-Dest: document\r\n"), 200);
  EXPECT_EQ(StatusOf(get + follows + "Sec-Fetch-Dest: iframe\r\n"), 403);
  EXPECT_EQ(StatusOf(post + follows + "Sec-Fetch-Dest: document\r\n"), 403);
}

TEST(HttpRequestTest, RandomBytesAreAnswered) {
  Rng rng(11);
  const std::string alphabet = "GET /HOST:host \r\n\r\n1.\t\x01\xff[]";
  for (int i = 0; i < 20000; ++i) {
    std::string head = rng.Below(2) == 0 ? "GET / HTTP/1.1\r\n" : "";
    for (uint64_t n = rng.Below(60); n > 0; --n) {
      head.push_back(alphabet[rng.Below(alphabet.size())]);
    }
    const int status = StatusOf(head);
    EXPECT_TRUE(status == 200 || (status >= 400 && status < 506))
        << "seed 11, number " << i;
  }
}

TEST(HttpRequestTest, EveryAnswerTellsTheBrowserToTrustNobodyElse) {
  for (const int status : {200, 404, 403}) {
    const std::string text =
        Serialize({.status = status, .body = "x"}, false, true);
    EXPECT_THAT(text, HasSubstr("\r\nContent-Security-Policy: default-src "
                                "'none'; script-src 'self'; style-src 'self'"));
    EXPECT_THAT(text, Not(HasSubstr("unsafe")));
    EXPECT_THAT(text, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(text, HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"));
    EXPECT_THAT(text, HasSubstr("\r\nReferrer-Policy: no-referrer\r\n"));
    EXPECT_THAT(text, HasSubstr("\r\nCache-Control: no-store\r\n"));
    EXPECT_THAT(text, Not(HasSubstr("Access-Control")));
  }
  EXPECT_THAT(Serialize({.etag = "\"a\""}, false, true),
              HasSubstr("\r\nCache-Control: no-cache\r\nETag: \"a\"\r\n"));
  EXPECT_THAT(Serialize({.status = 401}, false, false),
              HasSubstr("\r\nWWW-Authenticate: Bearer\r\n"));
}

TEST(HttpRequestTest, NamesThatOthersMayPointHereAreNotOurs) {
  for (const char* ours : {"127.0.0.1", "::1", "10.1.2.3", "localhost",
                           "LocalHost", "farm.example.org"}) {
    EXPECT_TRUE(IsOurHost(ours, "Farm.example.org")) << ours;
  }
  for (const char* other : {"evil.example.org", "127.0.0.1.evil.org", "",
                            "localhost.evil.org", "1.2.3"}) {
    EXPECT_FALSE(IsOurHost(other, "0.0.0.0")) << other;
  }
}

}  // namespace
}  // namespace tilefarm::http

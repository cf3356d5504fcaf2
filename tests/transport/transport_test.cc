// Addresses that may be dialled, and files of secrets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/process.h"
#include "transport/endpoint.h"
#include "transport/secret_file.h"

namespace tilefarm::transport {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tilefarm::testing::RunCommand;
using tilefarm::testing::TempDir;

constexpr char kToken[] = "tilefarm_0123456789abcdef0123456789abcdef";

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

class TransportTest : public ::testing::Test {
 protected:
  // Makes a folder of certificates with the program that users run.
  void MakeCerts(const std::string& folder) {
    const auto made = RunCommand({TILEFARM_SOURCE_DIR "/deploy/make-certs",
                                  dir_.File(folder), "--user", "alice"});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
  }
  std::string Secret(const std::string& name, const std::string& text,
                     mode_t mode) {
    const std::string path = dir_.Write(name, text);
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

  TempDir dir_;
};

TEST(AddressTest, HostsAndPortsAreSplit) {
  EXPECT_EQ(SplitAddress("127.0.0.1:7070")->port, 7070);
  EXPECT_EQ(SplitAddress("[::1]:1")->host, "::1");
  for (const char* bad : {"", "host", ":1", "host:", "host:x", "host:65536"}) {
    EXPECT_EQ(SplitAddress(bad).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
  for (const char* host : {"localhost", "127.0.0.1", "127.9.9.9", "::1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "localhost.evil.org",
                           "127.0.0.1.evil.org", ""}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST_F(TransportTest, TokenFileThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0644, 0640, 0604, 0620, 0660}) {
    const std::string path = Secret("token", kToken, mode);
    const auto token = ReadTokenFile(path);
    EXPECT_EQ(token.status().code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(MessageOf(token.status()),
                AllOf(HasSubstr("chmod 600"), HasSubstr(path)));
  }
  EXPECT_EQ(
      ReadTokenFile(Secret("token", std::string(kToken) + "\n", 0600)).value(),
      kToken);
  EXPECT_EQ(ReadTokenFile(Secret("token", kToken, 0400)).value(), kToken);
}

TEST_F(TransportTest, TokenFileWithoutATokenIsRefusedAndNotShown) {
  for (const char* text : {"", "\n", "short", "two tokens of some length here",
                           "tilefarm_0123456789\x01"}) {
    const auto token = ReadTokenFile(Secret("token", text, 0600));
    EXPECT_EQ(token.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
    if (std::string(text).size() > 4) {
      EXPECT_THAT(MessageOf(token.status()), Not(HasSubstr(text)));
    }
  }
  EXPECT_EQ(ReadTokenFile(dir_.File("none")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadTokenFile(dir_.path()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TransportTest, TokenNeverGoesToAnotherMachineWithoutTls) {
  Endpoint endpoint;
  endpoint.security.token = kToken;
  EXPECT_TRUE(CheckEndpoint(endpoint).ok());  // loopback: it is not sent
  endpoint.address = "10.1.2.3:7070";
  const absl::Status status = CheckEndpoint(endpoint);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("--tls-ca"), Not(HasSubstr(kToken))));
  endpoint.security.token.clear();
  endpoint.security.token_file = Secret("token", kToken, 0600);
  EXPECT_FALSE(CheckEndpoint(endpoint).ok());
  ASSERT_NO_FATAL_FAILURE(MakeCerts("a"));
  endpoint.security.ca = dir_.File("a/ca.crt");
  EXPECT_TRUE(CheckEndpoint(endpoint).ok()) << CheckEndpoint(endpoint);
}

TEST_F(TransportTest, FilesThatDoNotFitAreNamed) {
  ASSERT_NO_FATAL_FAILURE(MakeCerts("a"));
  ASSERT_NO_FATAL_FAILURE(MakeCerts("b"));
  Endpoint endpoint;
  ClientSecurity& security = endpoint.security;
  const auto problem = [&] { return MessageOf(CheckEndpoint(endpoint)); };

  security.cert = dir_.File("a/user-alice.crt");
  EXPECT_THAT(problem(), HasSubstr("--tls-key is missing"));
  security.key = dir_.File("a/user-alice.key");
  EXPECT_THAT(problem(), HasSubstr("--tls-ca"));
  security.ca = dir_.File("a/none.crt");
  EXPECT_THAT(problem(), HasSubstr("none.crt: No such file"));
  security.ca = dir_.File("a/ca.key");
  EXPECT_THAT(problem(), HasSubstr("no PEM certificate"));
  security.ca = dir_.File("a/ca.crt");
  EXPECT_EQ(problem(), "");
  security.key = dir_.File("b/user-alice.key");
  EXPECT_THAT(problem(), HasSubstr("is not the key of"));
  security.key = dir_.File("a/user-alice.crt");
  ASSERT_EQ(chmod(security.key.c_str(), 0600), 0);
  EXPECT_THAT(problem(), HasSubstr("no PEM private key"));
  security.key = dir_.File("a/user-alice.key");
  ASSERT_EQ(chmod(security.key.c_str(), 0644), 0);
  EXPECT_THAT(problem(), HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace tilefarm::transport

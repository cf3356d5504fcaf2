// Access control, expiry and rate limits: the gate under a fake clock.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/time/clock.h"
#include "proto/tilefarm/v1/admin.pb.h"
#include "proto/tilefarm/v1/farm.pb.h"
#include "proto/tilefarm/v1/tune.pb.h"
#include "server/security/certificate.h"
#include "server/security/gate.h"
#include "server/security/rate_limiter.h"
#include "server/security/roles.h"
#include "server/security/token.h"
#include "server/services/listen.h"
#include "tests/support/fake_clock.h"
#include "tests/support/process.h"

namespace tilefarm::security {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using tilefarm::testing::FakeClock;
using tilefarm::testing::RunCommand;
using tilefarm::testing::TempDir;

constexpr char kConnect[] = "/tilefarm.v1.Farm/Connect";
constexpr char kSubmit[] = "/tilefarm.v1.Tune/Submit";
constexpr char kImport[] = "/tilefarm.v1.Tune/DbImport";
constexpr char kCreate[] = "/tilefarm.v1.Admin/CreateToken";

// --- The table --------------------------------------------------------------

TEST(RolesTest, EveryMethodOfEveryServiceStandsInTheTable) {
  // Link in by name and find by file, so that a new service is found, too.
  v1::CreateTokenRequest::descriptor();
  v1::Hello::descriptor();
  v1::SubmitRequest::descriptor();
  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(
           TILEFARM_SOURCE_DIR "/proto/tilefarm/v1")) {
    if (entry.path().extension() != ".proto") continue;
    const auto* const file = pool->FindFileByName(
        "proto/tilefarm/v1/" + entry.path().filename().string());
    ASSERT_NE(file, nullptr) << entry.path() << " is not linked into this test";
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const auto* const method = file->service(s)->method(m);
        paths.insert("/" + file->service(s)->full_name() + "/" +
                     method->name());
      }
    }
  }
  EXPECT_GE(paths.size(), 14u);
  for (const std::string& path : paths) {
    EXPECT_NE(FindMethod(path), nullptr)
        << path << " is missing in server/security/roles.cc: nobody beyond "
        << "open loopback may call it";
  }
  // The table has no method of Tilefarm that does not exist.
  for (const Method& method : Methods()) {
    const std::string path = method.path;
    EXPECT_TRUE(path.rfind("/tilefarm.", 0) != 0 || paths.contains(path))
        << path;
  }
}

TEST(RolesTest, WorkersUseTheFarmUsersNeverAdminsEverything) {
  for (const Method& method : Methods()) {
    const bool farm = std::string(method.path).starts_with("/tilefarm.v1.Farm");
    if (method.access == Access::kAnyone) continue;
    EXPECT_EQ(MayCall(Role::kWorker, method.access), farm) << method.path;
    EXPECT_TRUE(MayCall(Role::kAdmin, method.access)) << method.path;
    EXPECT_FALSE(farm && MayCall(Role::kUser, method.access));
  }
  EXPECT_FALSE(MayCall(Role::kUser, FindMethod(kImport)->access));
  EXPECT_FALSE(MayCall(Role::kUser, FindMethod(kCreate)->access));
  EXPECT_EQ(FindMethod("/tilefarm.v1.Tune/Nothing"), nullptr);
  EXPECT_EQ(ParseRole("ci"), Role::kCi);
  EXPECT_EQ(ParseRole("root"), std::nullopt);
}

TEST(RolesTest, CiIsAUserThatBringsCodeAndDecidesNothing) {
  for (const Method& method : Methods()) {
    if (method.access == Access::kUsers) {
      EXPECT_TRUE(MayCall(Role::kCi, method.access)) << method.path;
    }
  }
  for (const char* method : {"PutArtifact", "Compare", "AppendPoints"}) {
    const std::string path = std::string("/tilefarm.v1.Regression/") + method;
    ASSERT_NE(FindMethod(path), nullptr);
    EXPECT_TRUE(MayCall(Role::kCi, FindMethod(path)->access));
    EXPECT_FALSE(MayCall(Role::kUser, FindMethod(path)->access));
    EXPECT_FALSE(MayCall(Role::kWorker, FindMethod(path)->access));
  }
  const Access acknowledge =
      FindMethod("/tilefarm.v1.Regression/Acknowledge")->access;
  EXPECT_TRUE(MayCall(Role::kUser, acknowledge));
  EXPECT_FALSE(MayCall(Role::kCi, acknowledge));
  EXPECT_FALSE(MayCall(Role::kCi, FindMethod(kImport)->access));
}

// --- Pieces -----------------------------------------------------------------

TEST(TokenTest, TokensAre256RandomBitsAndStoredAsTheirHash) {
  const std::string token = NewToken();
  EXPECT_THAT(token, SizeIs(9 + 64));
  EXPECT_NE(token, NewToken());
  // The output of sha256sum for "abc".
  EXPECT_EQ(TokenHash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(SameHash("abcd", "abcd"));
  EXPECT_FALSE(SameHash("abcd", "abce"));
  EXPECT_FALSE(SameHash("abcd", "abc"));
  EXPECT_FALSE(CheckName("").ok());
  EXPECT_FALSE(CheckName("a b").ok());
  EXPECT_FALSE(CheckName(std::string(65, 'a')).ok());
  EXPECT_TRUE(CheckName("board-7.rack_2@lab").ok());
  // A date that cannot be parsed counts as past.
  EXPECT_EQ(TimeOfText("rubbish", absl::InfiniteFuture()),
            absl::InfinitePast());
}

TEST(RateLimiterTest, ABurstThenASteadyRateForEachAlone) {
  RateLimiter limiter(/*burst=*/3, /*per_second=*/2);
  absl::Duration now = absl::Seconds(100);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(limiter.Take("a", now), absl::ZeroDuration());
  }
  EXPECT_EQ(limiter.Take("a", now), absl::Milliseconds(500));
  // Rejected calls are not counted.
  EXPECT_EQ(limiter.Take("a", now), absl::Milliseconds(500));
  EXPECT_EQ(limiter.Take("b", now), absl::ZeroDuration());
  now += absl::Milliseconds(500);
  EXPECT_EQ(limiter.Take("a", now), absl::ZeroDuration());
  EXPECT_GT(limiter.Take("a", now), absl::ZeroDuration());
  limiter.Prune(now);
  EXPECT_EQ(limiter.size(), 1u);
  limiter.Prune(now + absl::Seconds(10));
  EXPECT_EQ(limiter.size(), 0u);
}

TEST(ListenTest, BeyondLoopbackItTakesTlsAndAuthenticationOrASentence) {
  using services::CheckListenAddress;
  using services::ListenSecurity;
  const auto problem = [](const ListenSecurity& security) {
    return std::string(CheckListenAddress("0.0.0.0:1", security).message());
  };
  EXPECT_THAT(problem({}),
              AllOf(HasSubstr("--tls-cert"), HasSubstr("--tls-key"),
                    HasSubstr("--insecure")));
  EXPECT_THAT(problem({.tls_cert = "c"}), HasSubstr("--tls-key is missing"));
  EXPECT_THAT(problem({.tls_cert = "c", .tls_key = "k"}),
              HasSubstr("--tls-client-ca is missing"));
  EXPECT_EQ(problem({.tls_cert = "c", .tls_key = "k", .tls_client_ca = "a"}),
            "");
  EXPECT_EQ(problem({.tls_cert = "c", .tls_key = "k", .tokens_only = true}),
            "");
  EXPECT_EQ(problem({.insecure = true}), "");
  EXPECT_THAT(problem({.tls_cert = "c", .tls_key = "k", .insecure = true}),
              HasSubstr("--insecure means no TLS"));
  EXPECT_THAT(problem({.tokens_only = true}), HasSubstr("need TLS"));
  EXPECT_TRUE(CheckListenAddress("127.0.0.1:1").ok());
  EXPECT_THAT(services::InsecureWarning("0.0.0.0:1", {.insecure = true}),
              HasSubstr("plain text"));
  EXPECT_THAT(services::InsecureWarning("[::1]:1", {.insecure = true}),
              IsEmpty());
}

// --- The gate ---------------------------------------------------------------

class GateTest : public ::testing::Test {
 protected:
  GateTest() {
    auto store = database::Store::Open(
        ":memory:", database::Store::Mode::kReadWrite, clock_);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    gate_ = std::make_unique<Gate>(*store_, Gate::Mode::kAuthenticated, limits_,
                                   clock_);
  }
  Credentials Token(const std::string& name, Role role,
                    absl::Duration lifetime = absl::InfiniteDuration()) {
    auto token = gate_->CreateToken(name, role, lifetime, "ann");
    EXPECT_TRUE(token.ok()) << token.status();
    return {.authorization = "Bearer " + *token};
  }
  absl::Status Call(const char* path, const Credentials& credentials) {
    return gate_->Authorize(path, credentials);
  }

  FakeClock clock_;
  Limits limits_ = [] {
    Limits limits;
    limits.user_burst = 5;
    limits.user_calls_per_second = 1;
    limits.user_streams = 2;
    limits.user_transfers = 1;
    return limits;
  }();
  std::unique_ptr<database::Store> store_;
  std::unique_ptr<Gate> gate_;
};

TEST_F(GateTest, WithoutOrWithAWrongCredentialNobodyComesIn) {
  EXPECT_TRUE(absl::IsUnauthenticated(Call(kSubmit, {})));
  for (const char* header :
       {"Bearer", "Bearer ", "Basic YTpi", "twice", "Bearer tilefarm_0"}) {
    EXPECT_TRUE(
        absl::IsUnauthenticated(Call(kSubmit, {.authorization = header})))
        << header;
  }
  EXPECT_TRUE(absl::IsUnauthenticated(
      Call(kSubmit, {.certificate = "-----BEGIN CERTIFICATE-----\nrubbish"})));
  // Methods that need no credentials.
  EXPECT_TRUE(Call("/grpc.health.v1.Health/Check", {}).ok());
  EXPECT_FALSE(Call("/grpc.health.v1.Health/Watch", {}).ok());
}

TEST_F(GateTest, EachRoleIsHeldToItsMethods) {
  const Credentials worker = Token("w", Role::kWorker);
  const Credentials user = Token("u", Role::kUser);
  const Credentials admin = Token("a", Role::kAdmin);
  EXPECT_TRUE(Call(kConnect, worker).ok());
  EXPECT_TRUE(Call(kSubmit, user).ok());
  for (const char* path : {kConnect, kSubmit, kImport, kCreate}) {
    EXPECT_TRUE(Call(path, admin).ok()) << path;
  }
  for (const char* path : {kSubmit, kImport, kCreate}) {
    EXPECT_TRUE(absl::IsPermissionDenied(Call(path, worker))) << path;
  }
  for (const char* path : {kConnect, kImport, kCreate, "/a.B/Unknown"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(Call(path, user))) << path;
  }
}

TEST_F(GateTest, TokensAreStoredAsHashesAlone) {
  const std::string token =
      gate_->CreateToken("u", Role::kUser, absl::Hours(1), "ann").value();
  const auto rows = store_->ListTokens().value();
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].sha256, TokenHash(token));
  EXPECT_EQ(rows[0].created_at, "2023-11-14T23:13:20Z");
  EXPECT_EQ(rows[0].expires_at, "2023-11-15T00:13:20Z");
  EXPECT_EQ(rows[0].revoked_at, "");
}

TEST_F(GateTest, ExpiredTokenIsRefusedAndItsStreamsAreClosed) {
  const Credentials user = Token("u", Role::kUser, absl::Minutes(10));
  absl::Status closed;
  const auto live_call =
      gate_->Enter(gate_->Identify(user).value(), CallKind::kStream,
                   [&](const absl::Status& why) { closed = why; });
  ASSERT_TRUE(live_call.ok());
  clock_.Advance(absl::Minutes(9));
  gate_->Sweep();
  EXPECT_TRUE(closed.ok());
  clock_.Advance(absl::Minutes(2));
  EXPECT_TRUE(absl::IsUnauthenticated(Call(kSubmit, user)));
  gate_->Sweep();
  EXPECT_TRUE(absl::IsUnauthenticated(closed)) << closed;
  EXPECT_THAT(std::string(closed.message()), HasSubstr("expired"));
}

TEST_F(GateTest, RevocationClosesLiveStreamsOfThatNameAlone) {
  const Credentials worker = Token("w1", Role::kWorker);
  const Credentials other = Token("w2", Role::kWorker);
  int closed = 0, closed_other = 0;
  const auto live_call =
      gate_->Enter(gate_->Identify(worker).value(), CallKind::kStream,
                   [&](const absl::Status& why) {
                     EXPECT_TRUE(absl::IsUnauthenticated(why));
                     ++closed;
                   });
  const auto other_live_call =
      gate_->Enter(gate_->Identify(other).value(), CallKind::kStream,
                   [&](const absl::Status&) { ++closed_other; });
  EXPECT_EQ(gate_->Revoke("w1", "bob").value(), 1);
  gate_->Sweep();
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(closed_other, 0);
  EXPECT_TRUE(absl::IsUnauthenticated(Call(kConnect, worker)));
  EXPECT_TRUE(Call(kConnect, other).ok());
  // Revoking again revokes nothing, and a new one is valid.
  EXPECT_EQ(gate_->Revoke("w1", "bob").value(), 0);
  EXPECT_TRUE(Call(kConnect, Token("w1", Role::kWorker)).ok());
}

TEST_F(GateTest, TokensMadeAndRevokedAreInTheAuditLog) {
  Token("w1", Role::kWorker);
  clock_.Advance(absl::Seconds(5));
  Token("w2", Role::kUser, absl::Hours(1));
  ASSERT_TRUE(gate_->Revoke("w1", "bob").ok());
  // Rejected calls are not logged.
  EXPECT_FALSE(gate_->Revoke("no name\n", "bob").ok());
  const auto log = *gate_->TokenLog("", 10);
  ASSERT_EQ(log.size(), 3u);
  EXPECT_EQ(log[0].actor, "ann");
  EXPECT_EQ(log[0].action, "token create");
  EXPECT_EQ(log[0].subject, "w1");
  EXPECT_THAT(log[0].detail, HasSubstr("worker"));
  EXPECT_THAT(
      log[1].detail,
      HasSubstr("user, until " + TimeText(clock_.Now() + absl::Hours(1))));
  EXPECT_EQ(log[2].actor, "bob");
  EXPECT_EQ(log[2].action, "token revoke");
  EXPECT_EQ(log[2].at, TimeText(clock_.Now()));
  EXPECT_EQ(log[2].detail, "1 tokens");
  EXPECT_EQ(gate_->TokenLog("w1", 10)->size(), 2u);
  EXPECT_EQ(gate_->TokenLog("", 1)->front().action, "token revoke");
  // A device of that name has a separate log.
  EXPECT_TRUE(store_->device_tables().ReadAudit("w1", 10)->empty());
}

TEST_F(GateTest, RevocationsSurviveARestart) {
  const Credentials user = Token("u", Role::kUser);
  const Credentials good = Token("v", Role::kUser);
  ASSERT_TRUE(gate_->Revoke("u", "bob").ok());
  gate_ = std::make_unique<Gate>(*store_, Gate::Mode::kAuthenticated, limits_,
                                 clock_);
  ASSERT_TRUE(gate_->Start().ok());
  EXPECT_TRUE(absl::IsUnauthenticated(Call(kSubmit, user)));
  EXPECT_TRUE(Call(kSubmit, good).ok());
}

TEST_F(GateTest, OneFloodingUserIsToldToWaitAndAnotherIsNot) {
  const Credentials flood = Token("flood", Role::kUser);
  const Credentials calm = Token("calm", Role::kUser);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Call(kSubmit, flood).ok());
  for (int i = 0; i < 100; ++i) {
    const absl::Status status = Call(kSubmit, flood);
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("wait 1.00 s"));
  }
  EXPECT_TRUE(Call(kSubmit, calm).ok());
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Call(kSubmit, flood).ok());
}

TEST_F(GateTest, LastingCallsOfOneUserAreCounted) {
  const Caller user = gate_->Identify(Token("u", Role::kUser)).value();
  const auto close = [](const absl::Status&) {};
  auto a = gate_->Enter(user, CallKind::kStream, close);
  auto b = gate_->Enter(user, CallKind::kStream, close);
  EXPECT_TRUE(absl::IsResourceExhausted(
      gate_->Enter(user, CallKind::kStream, close).status()));
  // Of another kind, of another user, and after one has ended.
  auto c = gate_->Enter(user, CallKind::kTransfer, close);
  EXPECT_TRUE(c.ok());
  EXPECT_FALSE(gate_->Enter(user, CallKind::kTransfer, close).ok());
  const Caller other = gate_->Identify(Token("v", Role::kUser)).value();
  EXPECT_TRUE(gate_->Enter(other, CallKind::kStream, close).ok());
  a->reset();
  EXPECT_TRUE(gate_->Enter(user, CallKind::kStream, close).ok());
}

TEST_F(GateTest, AWorkerCarriesItsCredentialsNameOrOneBelowIt) {
  const Caller rack = gate_->Identify(Token("rack", Role::kWorker)).value();
  EXPECT_TRUE(gate_->CheckWorkerName(rack, "rack").ok());
  EXPECT_TRUE(gate_->CheckWorkerName(rack, "rack.7").ok());
  for (const char* name : {"", "rack7", "rac", "other", "other.rack"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(gate_->CheckWorkerName(rack, name)))
        << name;
  }
}

TEST_F(GateTest, MessagesAreHeldToTheirMethodsSize) {
  EXPECT_TRUE(gate_->CheckSize(kSubmit, limits_.program_bytes).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(
      gate_->CheckSize(kSubmit, limits_.program_bytes + 1)));
  EXPECT_FALSE(
      gate_->CheckSize("/tilefarm.v1.Tune/Cancel", limits_.small_bytes + 1)
          .ok());
  EXPECT_FALSE(gate_->CheckSize("/a.B/Unknown", limits_.small_bytes + 1).ok());
}

TEST_F(GateTest, OnOpenLoopbackTheClaimedNameCounts) {
  Gate open(*store_, Gate::Mode::kOpen, limits_, clock_);
  const Caller caller = open.Identify({}).value();
  EXPECT_EQ(caller.NameOr("claimed"), "claimed");
  EXPECT_TRUE(caller.admin());
  EXPECT_TRUE(open.CheckWorkerName(caller, "any").ok());
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(open.Authorize(kCreate, {}).ok());
  const Caller proved = gate_->Identify(Token("u", Role::kUser)).value();
  EXPECT_EQ(proved.NameOr("claimed"), "u");
  EXPECT_FALSE(proved.admin());
}

TEST_F(GateTest, OnOpenLoopbackCallsThatLastBeginAtALimitedRate) {
  limits_.worker_burst = 5;
  limits_.worker_calls_per_second = 1;
  Gate open(*store_, Gate::Mode::kOpen, limits_, clock_);
  const Caller caller = open.Identify({}).value();
  const auto enters = [&] {
    // It ends at once, like the stream of a worker that reconnects.
    return open.Enter(caller, CallKind::kStream, [](const absl::Status&) {})
        .status();
  };
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(enters().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(enters()));
  EXPECT_EQ(open.figures().resource_exhausted, 1);
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(enters().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(enters()));
}

class CertificateTest : public GateTest {
 protected:
  std::string Read(const std::string& name) {
    std::ifstream in(dir_.File(name));
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void SetUp() override {
    const auto made =
        RunCommand({TILEFARM_SOURCE_DIR "/deploy/make-certs", dir_.path(),
                    "--worker", "w1", "--user", "alice", "--admin", "root"});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    // The certificates were issued now.
    clock_.Advance(absl::Now() - clock_.Now() + absl::Minutes(1));
  }
  TempDir dir_;
};

TEST_F(CertificateTest, NameAndRoleAreReadFromTheCertificate) {
  const auto worker = ReadCertificate(Read("worker-w1.crt"));
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->name, "w1");
  EXPECT_EQ(worker->role, Role::kWorker);
  EXPECT_LT(worker->not_before, worker->not_after);
  EXPECT_EQ(ReadCertificate(Read("admin-root.crt"))->role, Role::kAdmin);
  // The server's certificate is not a client's.
  const auto server = ReadCertificate(Read("server.crt"));
  EXPECT_TRUE(absl::IsUnauthenticated(server.status()));
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("one role"));
}

TEST_F(CertificateTest, CertificatesOpenWhatTheirRoleMay) {
  const Credentials alice{.certificate = Read("user-alice.crt")};
  EXPECT_TRUE(Call(kSubmit, alice).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Call(kConnect, alice)));
  EXPECT_TRUE(absl::IsPermissionDenied(
      Call(kSubmit, {.certificate = Read("worker-w1.crt")})));
  // If there is a token, too, the token counts.
  Credentials both = Token("carol", Role::kAdmin);
  both.certificate = alice.certificate;
  EXPECT_EQ(gate_->Identify(both)->name, "carol");
  EXPECT_TRUE(Call(kCreate, both).ok());
}

TEST_F(CertificateTest, CertificatesExpireAndAreRevokedByNameUpToNow) {
  const Credentials alice{.certificate = Read("user-alice.crt")};
  const Caller caller = gate_->Identify(alice).value();
  absl::Status closed;
  const auto live_call =
      gate_->Enter(caller, CallKind::kStream,
                   [&](const absl::Status& why) { closed = why; });
  EXPECT_EQ(gate_->Revoke("alice", "bob").value(), 0);
  EXPECT_TRUE(absl::IsUnauthenticated(closed));
  EXPECT_TRUE(absl::IsUnauthenticated(Call(kSubmit, alice)));
  // A later one is valid: this one, if it had been revoked an hour earlier.
  ASSERT_TRUE(store_
                  ->RevokeName("root",
                               TimeText(caller.not_before - absl::Hours(1)),
                               "ann")
                  .ok());
  ASSERT_TRUE(gate_->Start().ok());
  const Credentials root{.certificate = Read("admin-root.crt")};
  EXPECT_TRUE(Call(kSubmit, root).ok());
  clock_.Advance(absl::Hours(24 * 366));
  EXPECT_TRUE(absl::IsUnauthenticated(Call(kSubmit, root)));
}

}  // namespace
}  // namespace tilefarm::security

#include "server/jobs/comparisons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "server/jobs/result_writer.h"
#include "tests/server/farm_fixture.h"

namespace tilefarm::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kFingerprint;
using ::testing::SizeIs;
using testing::TestHello;
using testing::TestTarget;

constexpr char kProgram[] = R"(@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + T.float32(1)
)";

class ComparisonsTest : public farm::FarmTest {
 protected:
  ComparisonsTest()
      : store_(*database::Store::Open(":memory:",
                                      database::Store::Mode::kReadWrite)) {
    for (const char* bytes : {"old", "new"}) {
      EXPECT_TRUE(store_->regression_tables()
                      .PutArtifact({.sha256 = Sha256Hex(bytes),
                                    .target = TestTarget().Key(),
                                    .symbols = {"f"}},
                                   bytes, {})
                      .ok());
    }
  }
  CompareSpec Spec(int clusters = 1) {
    return {.program = kProgram,
            .target = TestTarget().Key(),
            .baseline = {.sha256 = Sha256Hex("old"), .symbol = "f"},
            .candidate = {.sha256 = Sha256Hex("new"), .symbol = "f"},
            .device = "w",
            .candidate_first = std::vector<bool>(clusters, true)};
  }
  Connected ConnectComparing(const std::string& name, int slots = 1) {
    farm::WorkerHello hello = TestHello(name);
    hello.device.takes_artifacts = true;
    hello.device.isolation = "seccomp+netns";
    return Connect(hello, slots);
  }
  absl::StatusOr<std::string> Start(const CompareSpec& spec) {
    return comparisons_.Start(spec, [this](ClusterResult result) {
      results_.push_back(std::move(result));
    });
  }
  // Reports pairs for the lease, and hands the completion on.
  void Answer(const Connected& worker, const farm::Lease& lease) {
    farm::Measurement measured = testing::Measured(1e-3);
    measured.compared = {.baseline_seconds = {1e-3},
                         .candidate_seconds = {2e-3}};
    farm_.OnResult(worker.session, {.lease_id = lease.lease_id,
                                    .attempt = lease.attempt,
                                    .candidate_id = lease.item.candidate_id,
                                    .measurement = std::move(measured)});
    for (const farm::Completion& completion : sink_.completions) {
      comparisons_.OnCompleted(completion);
    }
    sink_.completions.clear();
  }

  std::unique_ptr<database::Store> store_;
  Comparisons comparisons_{*store_, farm_, {.allowed = true}};
  std::vector<ClusterResult> results_;
};

TEST_F(ComparisonsTest, EachClusterIsALeaseOfBothArtifacts) {
  const Connected worker = ConnectComparing("w", 2);
  CompareSpec spec = Spec(2);
  spec.candidate_first = {true, false};
  spec.cluster = absl::Milliseconds(70);
  spec.most_rounds = 9;
  ASSERT_TRUE(Start(spec).ok());
  const auto leases = worker.link->leases();
  ASSERT_THAT(leases, SizeIs(2));
  const farm::Comparison& first = *leases[0].item.comparison;
  EXPECT_EQ(first.baseline.sha256, Sha256Hex("old"));
  EXPECT_EQ(first.baseline.bytes, 3);
  EXPECT_EQ(first.candidate.sha256, Sha256Hex("new"));
  EXPECT_TRUE(first.candidate_first);
  EXPECT_EQ(first.cluster, absl::Milliseconds(70));
  EXPECT_EQ(first.most_rounds, 9);
  EXPECT_FALSE(leases[1].item.comparison->candidate_first);
  EXPECT_EQ(leases[0].item.trace, "");
  EXPECT_EQ(farm_.HolderOfArtifact(leases[0].lease_id, Sha256Hex("old")), "w");
  EXPECT_EQ(farm_.HolderOfArtifact(leases[0].lease_id, Sha256Hex("other")), "");
  EXPECT_EQ(farm_.HolderOfArtifact("no-lease", Sha256Hex("old")), "");
  Answer(worker, leases[1]);
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_EQ(results_[0].cluster, 1);
  EXPECT_EQ(results_[0].device, "w");
  EXPECT_THAT(results_[0].measurement.compared->candidate_seconds,
              ElementsAre(2e-3));
}

TEST_F(ComparisonsTest, ALostClusterIsMeasuredAgain) {
  Connected worker = ConnectComparing("w");
  ASSERT_TRUE(Start(Spec()).ok());
  ASSERT_THAT(worker.link->leases(), SizeIs(1));
  // Another boot id: the worker was restarted.
  farm::WorkerHello hello = TestHello("w");
  hello.boot_id = "another";
  hello.device.takes_artifacts = true;
  hello.device.isolation = "seccomp+netns";
  worker = Connect(hello);
  ASSERT_THAT(worker.link->leases(), SizeIs(1));
  EXPECT_EQ(worker.link->leases()[0].attempt, 2u);
  Answer(worker, worker.link->leases()[0]);
  EXPECT_THAT(results_, SizeIs(1));
}

TEST_F(ComparisonsTest, AResultWithoutPairsIsAFailedCluster) {
  const Connected worker = ConnectComparing("w");
  ASSERT_TRUE(Start(Spec()).ok());
  Report(worker, worker.link->leases()[0].lease_id,
         worker.link->leases()[0].item.candidate_id);
  ASSERT_THAT(sink_.completions, SizeIs(1));
  EXPECT_EQ(sink_.completions[0].measurement.status,
            database::Status::kRunError);
  EXPECT_THAT(sink_.completions[0].measurement.error,
              HasSubstr("something else than was asked"));
}

TEST_F(ComparisonsTest, NobodyIsToldAfterwards) {
  const Connected worker = ConnectComparing("w");
  const auto ticket = Start(Spec());
  ASSERT_TRUE(ticket.ok());
  const farm::Lease lease = worker.link->leases()[0];
  comparisons_.Abandon(*ticket);
  EXPECT_THAT(worker.link->cancelled(), ElementsAre(lease.lease_id));
  Answer(worker, lease);
  EXPECT_THAT(results_, IsEmpty());
}

TEST_F(ComparisonsTest, OnlyDevicesThatMayTakeThemGetArtifacts) {
  const auto code = [&] { return Start(Spec()).status().code(); };
  EXPECT_EQ(code(), absl::StatusCode::kFailedPrecondition) << "no device";
  farm::WorkerHello hello = TestHello("w");
  hello.device.isolation = "seccomp+netns";
  Connect(hello);
  EXPECT_EQ(code(), absl::StatusCode::kFailedPrecondition) << "takes none";
  hello.device.takes_artifacts = true;
  hello.device.isolation = "rlimits";
  Connect(hello);
  EXPECT_EQ(code(), absl::StatusCode::kFailedPrecondition) << "too weak";
  ConnectComparing("other");
  EXPECT_EQ(code(), absl::StatusCode::kFailedPrecondition) << "another one";
  hello.device.isolation = "seccomp+netns+cgroup";
  Connect(hello);
  EXPECT_EQ(code(), absl::StatusCode::kOk);
}

TEST_F(ComparisonsTest, AServerThatIsNotAskedToTakesNone) {
  ConnectComparing("w");
  Comparisons closed(*store_, farm_, {});
  const absl::Status status = closed.Start(Spec(), nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--allow-artifacts"));
}

TEST_F(ComparisonsTest, WrongSpecsAreRefused) {
  ConnectComparing("w");
  const auto with = [&](const auto& change) {
    CompareSpec spec = Spec();
    change(spec);
    return Start(spec).status().code();
  };
  EXPECT_EQ(with([](auto& s) { s.baseline.sha256 = "none"; }),
            absl::StatusCode::kNotFound);
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(with([](auto& s) { s.candidate.symbol = "g"; }), kInvalid);
  EXPECT_EQ(with([](auto& s) { s.candidate.spread = 2; }), kInvalid);
  EXPECT_EQ(with([](auto& s) { s.program = "nonsense"; }), kInvalid);
  EXPECT_EQ(with([](auto& s) { s.target = "aarch64:cortex-a72"; }), kInvalid);
  EXPECT_EQ(with([](auto& s) { s.candidate_first.clear(); }), kInvalid);
  EXPECT_EQ(with([](auto& s) { s.candidate_first.resize(65); }), kInvalid);
  EXPECT_EQ(with([](auto& s) { s.cluster = absl::Hours(1); }), kInvalid);
  EXPECT_EQ(with([](auto& s) { s.most_rounds = 1000; }), kInvalid);
  EXPECT_EQ(with([](auto& s) { s.requirements = {"cores>=nine"}; }), kInvalid);
}

TEST_F(ComparisonsTest, TheLeastBusyDeviceIsTheFirstChoice) {
  ConnectComparing("a");
  ConnectComparing("b");
  const auto names = [&] {
    std::vector<std::string> all;
    for (const auto& choice : farm_.Choices(TestTarget())) {
      all.push_back(choice.name);
    }
    return all;
  };
  EXPECT_THAT(names(), ElementsAre("a", "b"));
  CompareSpec spec = Spec();
  spec.device = "a";
  ASSERT_TRUE(Start(spec).ok());
  EXPECT_THAT(names(), ElementsAre("b", "a"));
  EXPECT_TRUE(farm_.Choices(TestTarget())[0].idle);
  EXPECT_FALSE(farm_.Choices(TestTarget())[1].idle);
}

}  // namespace
}  // namespace tilefarm::jobs

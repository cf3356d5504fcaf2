// Comparisons of two artifacts by the real tune-runner: what is measured, and
// whose fault a failure is.
#include <algorithm>

#include "tests/worker/runner_fixture.h"

namespace tilefarm::worker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

double Median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples.empty() ? 0 : samples[samples.size() / 2];
}

class CompareRunnerTest : public RunnerTest {
 protected:
  CompareRequest Pair(const std::string& baseline,
                      const std::string& candidate) {
    CompareRequest request;
    request.key = "workload";
    request.baseline = {.symbol = baseline, .artifact = object_};
    request.candidate = {.symbol = candidate, .artifact = object_};
    request.limits.timeout_ms = 20000;
    request.limits.memory_bytes = uint64_t{256} << 20;
    request.cluster_ms = 1;
    request.sample_us = 10;
    return request;
  }
  CompareReply Compare(const CompareRequest& request) {
    absl::StatusOr<CompareReply> reply = client_.Compare(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : CompareReply{};
  }
  CompareReply Compare(const std::string& baseline,
                       const std::string& candidate) {
    return Compare(Pair(baseline, candidate));
  }

  // Each side fails as the bad one, whichever is loaded first.
  void ExpectBlamed(const std::string& bad, RunStatus status,
                    const std::string& text) {
    for (const bool candidate_is_bad : {false, true}) {
      for (const bool candidate_first : {false, true}) {
        CompareRequest request =
            candidate_is_bad ? Pair("good", bad) : Pair(bad, "good");
        request.candidate_first = candidate_first;
        request.limits.timeout_ms = 3000;
        const CompareReply reply = Compare(request);
        EXPECT_EQ(reply.status, status) << reply.error;
        EXPECT_EQ(reply.failed, candidate_is_bad ? ComparedSide::kCandidate
                                                 : ComparedSide::kBaseline)
            << reply.error;
        EXPECT_THAT(reply.error,
                    StartsWith(candidate_is_bad ? "the candidate: "
                                                : "the baseline: "));
        EXPECT_THAT(reply.error, HasSubstr(text));
        EXPECT_FALSE(reply.verified);
      }
    }
    EXPECT_EQ(Compare("good", "good").status, RunStatus::kOk);
  }
};

TEST_F(CompareRunnerTest, TimesBothInPairs) {
  LoadDouble();
  CompareRequest request = Pair("good", "good");
  request.fewest_rounds = request.most_rounds = 6;
  for (const bool candidate_first : {false, true}) {
    request.candidate_first = candidate_first;
    const CompareReply reply = Compare(request);
    ASSERT_EQ(reply.status, RunStatus::kOk) << reply.error;
    EXPECT_TRUE(reply.verified);
    EXPECT_EQ(reply.baseline_seconds.size(), 12u);
    EXPECT_EQ(reply.candidate_seconds.size(), 12u);
    for (const auto* samples :
         {&reply.baseline_seconds, &reply.candidate_seconds}) {
      EXPECT_GT(*std::min_element(samples->begin(), samples->end()), 0);
    }
    EXPECT_GT(reply.canary_seconds, 0);
    EXPECT_GT(reply.child_seconds, 0);
    // Sanitizers need system calls that the filter refuses.
    EXPECT_THAT(reply.isolation,
                ::testing::AnyOf(StartsWith("seccomp"), StartsWith("rlimits")));
  }
}

TEST_F(CompareRunnerTest, SamplesBelongToTheirSide) {
  LoadDouble();
  for (const bool candidate_is_slow : {false, true}) {
    for (const bool candidate_first : {false, true}) {
      CompareRequest request =
          candidate_is_slow ? Pair("good", "slow") : Pair("slow", "good");
      request.candidate_first = candidate_first;
      const CompareReply reply = Compare(request);
      ASSERT_EQ(reply.status, RunStatus::kOk) << reply.error;
      const double slow = Median(candidate_is_slow ? reply.candidate_seconds
                                                   : reply.baseline_seconds);
      const double good = Median(candidate_is_slow ? reply.baseline_seconds
                                                   : reply.candidate_seconds);
      EXPECT_GE(slow, 0.02);  // it sleeps
      EXPECT_LT(good, 0.02);
    }
  }
}

TEST_F(CompareRunnerTest, RoundsFollowFromTheTimeOfACluster) {
  LoadDouble();
  CompareRequest request = Pair("slow", "slow");
  request.cluster_ms = 200;  // 80 ms a round
  EXPECT_EQ(Compare(request).baseline_seconds.size(), 8u) << "the fewest";
  request = Pair("good", "good");
  request.cluster_ms = 10000;
  EXPECT_EQ(Compare(request).baseline_seconds.size(), 128u) << "the most";
  request.most_rounds = 1u << 31;
  EXPECT_EQ(Compare(request).baseline_seconds.size(), 256u);
}

TEST_F(CompareRunnerTest, ACrashIsBlamedOnItsArtifact) {
  LoadDouble();
  ExpectBlamed("crash", RunStatus::kRunError, "crashed with SIGSEGV");
}
TEST_F(CompareRunnerTest, AWrongResultIsBlamedOnItsArtifact) {
  LoadDouble();
  ExpectBlamed("wrong", RunStatus::kWrongResult, "element 777");
}
TEST_F(CompareRunnerTest, AResultThatTurnsWrongIsBlamedOnItsArtifact) {
  LoadDouble();
  ExpectBlamed("wrong_later", RunStatus::kWrongResult, "in the last timed run");
}
TEST_F(CompareRunnerTest, AMissingFunctionIsBlamedOnItsArtifact) {
  LoadDouble();
  ExpectBlamed("absent", RunStatus::kRunError, "no such symbol: absent");
}
TEST_F(CompareRunnerTest, AFailureIsBlamedOnItsArtifact) {
  LoadDouble();
  ExpectBlamed("returns_seven", RunStatus::kRunError,
               "the function returned 7");
}

TEST_F(CompareRunnerTest, AnEndlessLoopTimesOut) {
  LoadDouble();
  CompareRequest request = Pair("good", "loops");
  request.limits.timeout_ms = 300;
  const CompareReply reply = Compare(request);
  EXPECT_EQ(reply.status, RunStatus::kRunTimeout);
  EXPECT_EQ(reply.failed, ComparedSide::kCandidate);
  ExpectStillWorks();
}

TEST_F(CompareRunnerTest, ProgramsInPlaceStartFromTheirInputs) {
  const LoadReply load =
      Load("doubles_in_place", {Buffer(ElementType::kFloat32, true, true)});
  ASSERT_TRUE(load.ok) << load.error;
  const CompareReply reply = Compare("doubles_in_place", "doubles_in_place");
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.verified);
}

TEST_F(CompareRunnerTest, LargeInputsAreSharedAndMoved) {
  const LoadReply load =
      Load("good", {Buffer(ElementType::kFloat32, true, false, 1 << 21),
                    Buffer(ElementType::kFloat32, false, true)});
  ASSERT_TRUE(load.ok) << load.error;
  CompareRequest request = Pair("good", "good");
  request.fewest_rounds = request.most_rounds = 8;
  const CompareReply reply = Compare(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
}

TEST_F(CompareRunnerTest, EachArtifactPacksConstantsInItsOwnWay) {
  BufferSpec input = Buffer(ElementType::kFloat32, true, false);
  input.layout_free = true;
  ASSERT_TRUE(
      Load("good", {input, Buffer(ElementType::kFloat32, false, true)}).ok);
  CompareRequest request = Pair("packs", "packs_slowly");
  request.fewest_rounds = request.most_rounds = 8;
  const CompareReply reply = Compare(request);
  ASSERT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.verified);
  // The reversed constants of one are not what the other reads.
  EXPECT_EQ(Compare("packs", "packs_wrongly").failed, ComparedSide::kCandidate);
  EXPECT_EQ(Compare("whole_is_wrong", "packs").failed, ComparedSide::kBaseline);
}

TEST_F(CompareRunnerTest, CachesAreFlushedOnRequest) {
  LoadDouble();
  CompareRequest request = Pair("good", "good");
  request.flush_cache = true;
  request.last_cache_bytes = 1 << 20;
  const CompareReply reply = Compare(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
}

// An artifact may name a library of kernels to get its weaker filter.
TEST_F(CompareRunnerTest, NamingALibraryDoesNotWeakenTheSandbox) {
  LoadDouble();
  CompareRequest request = Pair("good", "good");
  request.candidate.artifact += "libopenblas.so.0";
  const CompareReply reply = Compare(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_EQ(reply.isolation, Compare(Pair("good", "good")).isolation);
}

// Model artifacts have no reference: they are compared with each other.
class CompareModelsTest : public CompareRunnerTest {
 protected:
  void SetUp() override {
    LoadWorkload request;
    request.key = "workload";
    request.input_seed = 1;
    request.program.buffers = {Buffer(ElementType::kFloat32, true, false),
                               Buffer(ElementType::kFloat32, false, true)};
    const absl::StatusOr<LoadReply> reply = client_.Load(request);
    ASSERT_TRUE(reply.ok() && reply->ok) << reply.status();
  }
  CompareReply CompareModels(const std::string& baseline,
                             const std::string& candidate) {
    CompareRequest request = Pair(baseline, candidate);
    request.is_model = true;
    return Compare(request);
  }
  void ExpectFailure(const std::string& baseline, const std::string& candidate,
                     ComparedSide side, RunStatus status,
                     const std::string& text) {
    const CompareReply reply = CompareModels(baseline, candidate);
    EXPECT_EQ(reply.status, status) << reply.error;
    EXPECT_EQ(reply.failed, side) << reply.error;
    EXPECT_THAT(reply.error, HasSubstr(text));
    EXPECT_FALSE(reply.verified);
    EXPECT_EQ(CompareModels("model_good", "model_good").status, RunStatus::kOk);
  }
};

TEST_F(CompareModelsTest, EqualOnesAreTimed) {
  const CompareReply reply = CompareModels("model_good", "model_good");
  ASSERT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.verified);
  EXPECT_GE(reply.baseline_seconds.size(), 8u);
}
TEST_F(CompareModelsTest, RoundingIsAllowed) {
  const CompareReply reply = CompareModels("model_good", "model_rounds");
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_GT(reply.max_abs_error, 0);
}
TEST_F(CompareModelsTest, OtherOutputsAreTheCandidatesFault) {
  ExpectFailure("model_good", "model_wrong", ComparedSide::kCandidate,
                RunStatus::kWrongResult, "element 777");
  ExpectFailure("model_good", "model_wavers", ComparedSide::kCandidate,
                RunStatus::kWrongResult, "element 0");
  ExpectFailure("model_wavers", "model_good", ComparedSide::kBaseline,
                RunStatus::kWrongResult, "element 0");
}
TEST_F(CompareModelsTest, FailuresAreBlamedOnTheirModel) {
  ExpectFailure("model_crashes", "model_good", ComparedSide::kBaseline,
                RunStatus::kRunError, "SIGSEGV");
  ExpectFailure("model_good", "model_fails", ComparedSide::kCandidate,
                RunStatus::kRunError, "the function returned 7");
  ExpectFailure("model_good", "model_is_not_made", ComparedSide::kCandidate,
                RunStatus::kRunError, "a reason");
  ExpectFailure("model_of_integers", "model_good", ComparedSide::kBaseline,
                RunStatus::kRunError, "output 0 has another type");
  ExpectFailure("model_good", "good", ComparedSide::kCandidate,
                RunStatus::kRunError, "no such symbol: good_inputs");
}
TEST_F(CompareModelsTest, OtherWorkloadsAreNotTakenForModels) {
  // A kernel for a workload without a reference, and the other way round.
  EXPECT_THAT(Run("good").error, HasSubstr("no reference"));
  EXPECT_EQ(Compare("good", "good").status, RunStatus::kRunError);
  LoadDouble();
  EXPECT_EQ(CompareModels("model_good", "model_good").status,
            RunStatus::kRunError);
  EXPECT_EQ(Compare("good", "good").status, RunStatus::kOk);
}

TEST_F(CompareRunnerTest, UnknownWorkloadsAreAskedFor) {
  LoadDouble();
  CompareRequest request = Pair("good", "good");
  request.key = "other";
  EXPECT_EQ(Compare(request).status, RunStatus::kUnknownWorkload);
}

TEST_F(CompareRunnerTest, ACancelledComparisonEnds) {
  LoadDouble();
  CompareRequest request = Pair("good", "loops");
  request.run_id = 5;
  client_.Cancel(5);
  EXPECT_EQ(Compare(request).status, RunStatus::kCancelled);
}

}  // namespace
}  // namespace tilefarm::worker

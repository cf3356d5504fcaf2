// The real tune-runner with good and faulty kernels. Each fault must end with a
// reply, and the next candidate must run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/cache_flush.h"
#include "base/device_libraries.h"
#include "tests/support/until.h"
#include "tests/worker/runner_fixture.h"
#include "worker/helper_environment.h"
#include "worker/runner_query.h"

namespace tilefarm::worker {
namespace {

using testing::HasSubstr;

TEST_F(RunnerTest, MeasuresAGoodKernel) {
  LoadDouble();
  const RunReply reply = Run("good");
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.verified);
  EXPECT_FALSE(reply.stopped_early);
  EXPECT_GE(reply.seconds.size(), 3u);
  EXPECT_GT(reply.median_seconds, 0);
  EXPECT_LE(reply.ci_low_seconds, reply.median_seconds);
  EXPECT_GE(reply.ci_high_seconds, reply.median_seconds);
  EXPECT_GT(reply.canary_seconds, 0);
  EXPECT_EQ(reply.max_abs_error, 0);
  EXPECT_EQ(client_.isolation(), RunnersIsolation({kRunner}));
  EXPECT_EQ(reply.isolation, client_.isolation());
}

TEST_F(RunnerTest, FlushesTheCache) {
  LoadDouble();
  RunRequest request = Request("tires");
  request.flush_cache = true;
  request.last_cache_bytes = 2 << 20;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_EQ(reply.max_abs_error, 0);
}

// Then a sample is one run; with arguments in the caches it would be thousands.
TEST_F(RunnerTest, FlushesArgumentsThatExceedTheLastCache) {
  LoadDouble();
  RunRequest request = Request("tires");
  request.last_cache_bytes = 2 * kElements * sizeof(float) - 1;
  RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_EQ(reply.max_abs_error, 0);
  request.last_cache_bytes = 2 * kElements * sizeof(float);
  reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kRunError);
  EXPECT_THAT(reply.error, HasSubstr("the function returned 1"));
}

TEST_F(RunnerTest, PinsToTheGivenCpus) {
  LoadDouble();
  RunRequest request = Request("good");
  request.limits.cpus = {0};
  EXPECT_EQ(Run(request).status, RunStatus::kOk);
}

TEST_F(RunnerTest, HopelessCandidateStopsEarly) {
  LoadDouble();
  RunRequest request = Request("slow");
  request.best_seconds = 1e-6;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.stopped_early);
  EXPECT_TRUE(reply.verified);
  EXPECT_EQ(reply.seconds.size(), 1u);
}

TEST_F(RunnerTest, FirstRunsFarBehindTheBestAreGivenUp) {
  LoadDouble();
  RunRequest request = Request("loops");
  request.best_seconds = 1e-3;
  request.limits.timeout_ms = 60000;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kRunTimeout);
  EXPECT_THAT(reply.error,
              HasSubstr("given up, many times slower than the best, "
                        "in the first run"));
  EXPECT_LT(reply.child_seconds, 30);
  // The next one is measured as usual.
  EXPECT_EQ(Run(Request("good")).status, RunStatus::kOk);
}

TEST_F(RunnerTest, AStallIsNotTheCandidates) {
  LoadDouble();
  RunRequest request = Request("stalls_at_first");
  request.best_seconds = 1e-3;
  request.limits.timeout_ms = 60000;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
}

// Start-up is part of an artifact's own time, but not of a library's, which
// generates its kernels in its first call.
TEST_F(RunnerTest, LibrariesStartUpBeforeTheFirstRun) {
  LoadDouble();
  RunRequest request = Request("starts_up");
  request.best_seconds = 1e-3;
  request.limits.timeout_ms = 60000;
  RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.stopped_early);
  EXPECT_GE(reply.median_seconds, 0.1);
  request.artifact += std::string(1, '\0') + kDeviceLibraries[0].file;
  reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.verified);
  EXPECT_LT(reply.median_seconds, 0.1);
  EXPECT_GT(reply.seconds.size(), 1u);
}

TEST_F(RunnerTest, SamplesStopBeforeTheTimeLimit) {
  LoadDouble();
  RunRequest request = Request("slow");
  request.min_samples = request.max_samples = 1000;
  request.limits.timeout_ms = 500;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.verified);
  EXPECT_LT(reply.seconds.size(), 100u);
}

TEST_F(RunnerTest, OneRunIsEnoughWhereThereIsNoTimeForMore) {
  LoadDouble();
  RunRequest request = Request("slow");
  request.limits.timeout_ms = 60;
  const RunReply reply = Run(request);
  if (reply.status == RunStatus::kOk) {  // unless this machine is too busy
    EXPECT_EQ(reply.seconds.size(), 1u);
    EXPECT_FALSE(reply.stopped_early);
  }
}

// Constants are packed, both entry points are verified, and the packed one is
// timed.
class PackedRunnerTest : public RunnerTest {
 protected:
  void LoadPacked() {
    BufferSpec input = Buffer(ElementType::kFloat32, true, false);
    input.layout_free = true;
    const LoadReply reply =
        Load("good", {input, Buffer(ElementType::kFloat32, false, true)});
    ASSERT_TRUE(reply.ok) << reply.error;
  }

  void ExpectPacked(const std::string& symbol, RunStatus status,
                    const std::string& text) {
    LoadPacked();
    const RunReply reply = Run(symbol);
    EXPECT_EQ(reply.status, status) << reply.error;
    EXPECT_THAT(reply.error, HasSubstr(text));
    EXPECT_EQ(reply.verified, status == RunStatus::kOk);
    EXPECT_EQ(Run("packs").status, RunStatus::kOk);
  }
};

TEST_F(PackedRunnerTest, MeasuresAGoodKernel) {
  ExpectPacked("packs", RunStatus::kOk, "");
}
TEST_F(PackedRunnerTest, WrongPackedLayout) {
  ExpectPacked("packs_wrongly", RunStatus::kWrongResult,
               "in the last timed run");
}
TEST_F(PackedRunnerTest, PackedBufferThatIsNotFilled) {
  ExpectPacked("packs_in_part", RunStatus::kWrongResult, "element 0");
}
TEST_F(PackedRunnerTest, WrongWhole) {
  ExpectPacked("whole_is_wrong", RunStatus::kWrongResult, "in the first run");
}
TEST_F(PackedRunnerTest, PacksBeyondTheEnd) {
  ExpectPacked("packs_past_end", RunStatus::kRunError,
               "crashed with SIGSEGV while packing constants");
}
TEST_F(PackedRunnerTest, ImpossibleSize) {
  ExpectPacked("packs_too_much", RunStatus::kRunError,
               "an impossible size of a packed buffer");
}
TEST_F(PackedRunnerTest, FailureToPack) {
  ExpectPacked("fails_to_pack", RunStatus::kRunError,
               "the function returned 9");
}
TEST_F(PackedRunnerTest, MissingEntryPoints) {
  ExpectPacked("good", RunStatus::kRunError,
               "no such symbol: good_packed_bytes");
}

// SYMBOL packs as SYMBOL_pack does and runs the same code, so a race does not
// verify it.
TEST_F(PackedRunnerTest, ARaceVerifiesThePackedOneAlone) {
  LoadPacked();
  RunRequest request = Request("whole_is_wrong");
  request.best_seconds = 1;
  EXPECT_EQ(Run(request).status, RunStatus::kOk);
  request = Request("packs_wrongly");
  request.best_seconds = 1;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kWrongResult);
  EXPECT_THAT(reply.error, HasSubstr("in the first run"));
}

TEST_F(PackedRunnerTest, FirstRunsAreGivenUpWhateverPackingTakes) {
  LoadPacked();
  RunRequest request = Request("packs_slowly");
  request.best_seconds = 1e-3;
  request.limits.timeout_ms = 60000;
  EXPECT_EQ(Run(request).status, RunStatus::kOk);
  request.symbol = "packed_loops";
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kRunTimeout);
  EXPECT_THAT(reply.error, HasSubstr("given up, many times slower"));
}

// The caches are flushed of them before each sample, which is of one run then,
// after at most a thousand to warm up.
TEST_F(PackedRunnerTest, SamplesWithColdConstantsAreOfOneRun) {
  BufferSpec input = Buffer(ElementType::kFloat32, true, false);
  input.layout_free = true;
  for (const bool cold : {true, false}) {
    ProgramSpec program;
    program.buffers = {input, Buffer(ElementType::kFloat32, false, true)};
    program.cold_constants = cold;
    ASSERT_TRUE(Load("good", std::move(program)).ok);
    RunRequest request = Request("packed_few_runs");
    request.min_samples = request.max_samples = 30;
    const RunReply reply = Run(request);
    if (cold && CanFlushFromCaches()) {
      EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
      EXPECT_EQ(reply.seconds.size(), 30u);
    } else {
      EXPECT_THAT(reply.error, HasSubstr("the function returned 7"));
    }
  }
}

TEST_F(PackedRunnerTest, LargeConstantsArePackedIntoTheSameMemoryInTurns) {
  BufferSpec input = Buffer(ElementType::kFloat32, true, false, 1 << 20);
  input.layout_free = true;
  const LoadReply load =
      Load("good", {input, Buffer(ElementType::kFloat32, false, true)});
  ASSERT_TRUE(load.ok) << load.error;
  const std::pair<const char*, RunStatus> runs[] = {
      {"packs_large", RunStatus::kOk},
      {"packs_large_twice", RunStatus::kOk},
      {"packs_large_wrongly", RunStatus::kWrongResult},
      {"packs_large_past_end", RunStatus::kRunError},
      {"packs_large", RunStatus::kOk}};
  for (const double best_seconds : {1.0, 0.0}) {
    for (const auto& [symbol, status] : runs) {
      RunRequest request = Request(symbol);
      request.best_seconds = best_seconds;
      const RunReply reply = Run(request);
      EXPECT_EQ(reply.status, status) << symbol << ": " << reply.error;
      if (status == RunStatus::kRunError) {
        EXPECT_THAT(reply.error, HasSubstr("while packing constants"));
      }
    }
  }
}

TEST_F(RunnerTest, SmallBuffersAreMeasuredInSeveralPlaces) {
  LoadDouble();
  RunRequest request = Request("fails_in_one_place");
  request.min_samples = request.max_samples = 12;
  EXPECT_THAT(Run(request).error, HasSubstr("the function returned 1"));
  request = Request("good");
  request.min_samples = request.max_samples = 12;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_EQ(reply.seconds.size(), 12u);
}

TEST_F(PackedRunnerTest, ThePackedOneIsTimed) {
  LoadPacked();
  RunRequest request = Request("packed_is_slow");
  request.best_seconds = 1e-6;
  const RunReply reply = Run(request);
  EXPECT_TRUE(reply.stopped_early) << reply.error;
  EXPECT_GT(reply.median_seconds, 0.02);
}

TEST_F(RunnerTest, UnknownWorkloadIsAskedFor) {
  LoadDouble();
  RunRequest request = Request("good");
  request.key = "another";
  EXPECT_EQ(Run(request).status, RunStatus::kUnknownWorkload);
}

TEST_F(RunnerTest, Crash) {
  ExpectRunError("crash", "crashed with SIGSEGV in the first run");
}
TEST_F(RunnerTest, Abort) { ExpectRunError("aborts", "crashed with SIGABRT"); }
TEST_F(RunnerTest, WriteBeyondTheEnd) {
  ExpectRunError("writes_past_end", "crashed with SIGSEGV");
}
TEST_F(RunnerTest, ReadBeyondTheEnd) {
  ExpectRunError("reads_past_end", "crashed with SIGSEGV");
}
TEST_F(RunnerTest, AllocationWithoutEnd) {
  ExpectRunError("allocates", "the function returned -1");
}
TEST_F(RunnerTest, ExitWithinTheKernel) {
  ExpectRunError("exits", "exited with status 0");
}
TEST_F(RunnerTest, NonZeroReturn) {
  ExpectRunError("returns_seven", "the function returned 7");
}
TEST_F(RunnerTest, MissingSymbol) {
  ExpectRunError("no_such_function", "no such symbol");
}

TEST_F(RunnerTest, ArtifactThatIsNoSharedObject) {
  LoadDouble();
  RunRequest request = Request("good");
  request.artifact = "not an ELF file";
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kRunError);
  EXPECT_THAT(reply.error, HasSubstr("cannot load the artifact"));
  ExpectStillWorks();
}

TEST_F(RunnerTest, WrongElement) { ExpectWrong("wrong", "element 777"); }
TEST_F(RunnerTest, NanInTheOutput) {
  ExpectWrong("not_a_number", "element 3 is nan");
}
TEST_F(RunnerTest, ElementThatIsNeverWritten) {
  ExpectWrong("skips_last", "element 999");
}
TEST_F(RunnerTest, ResultThatTurnsWrongWhileTiming) {
  ExpectWrong("wrong_later", "in the last timed run");
}

TEST_F(RunnerTest, EndlessLoopTimesOut) {
  LoadDouble();
  for (const char* symbol : {"loops", "loops_ignoring_sigterm"}) {
    RunRequest request = Request(symbol);
    request.limits.timeout_ms = 200;
    const RunReply reply = Run(request);
    EXPECT_EQ(reply.status, RunStatus::kRunTimeout);
    EXPECT_THAT(reply.error, HasSubstr("longer than 200 ms"));
  }
  ExpectStillWorks();
}

TEST_F(RunnerTest, CancelEndsARun) {
  LoadDouble();
  RunRequest request = Request("loops");
  request.run_id = 7;
  request.limits.timeout_ms = 60000;
  std::thread canceller([this] {
    EXPECT_TRUE(Until([] {
      const std::vector<pid_t> runners = ProcessesWithParent(getpid());
      return runners.size() == 1 && !ChildrenOf(runners[0]).empty();
    }));
    client_.Cancel(6);  // another run
    client_.Cancel(7);
  });
  EXPECT_EQ(Run(request).status, RunStatus::kCancelled);
  canceller.join();
  client_.Cancel(7);  // already ended
  client_.Cancel(9);  // a later run
  request.run_id = 9;
  EXPECT_EQ(Run(request).status, RunStatus::kCancelled);
  ExpectStillWorks();
}

// With a system where no filter prevents kernels from creating processes.
class UnfilteredRunnerTest : public RunnerTest {
 protected:
  UnfilteredRunnerTest() : RunnerTest({kRunner, "--at-most", "rlimits"}) {}
};

TEST_F(UnfilteredRunnerTest, ProcessesLeftBehindAreKilled) {
  LoadDouble();
  EXPECT_EQ(Run("forks").status, RunStatus::kOk);
  for (pid_t runner : ProcessesWithParent(getpid())) {
    EXPECT_THAT(ChildrenOf(runner), testing::IsEmpty());
  }
  ExpectStillWorks();
}

TEST_F(RunnerTest, OutputOfTheKernelDoesNotMixWithFrames) {
  LoadDouble();
  const RunReply reply = Run("prints");
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  ExpectStillWorks();
}

TEST_F(RunnerTest, LargeInputsAreInheritedAndStayAsTheyAre) {
  ASSERT_TRUE(Load("good", {Buffer(ElementType::kFloat32, true, false, 1 << 21),
                            Buffer(ElementType::kFloat32, false, true)})
                  .ok);
  EXPECT_EQ(Run("good").status, RunStatus::kOk);
  const RunReply spoiled = Run("spoils_input");
  EXPECT_EQ(spoiled.status, RunStatus::kWrongResult);
  EXPECT_THAT(spoiled.error, HasSubstr("in the last timed run"));
  EXPECT_EQ(Run("good").status, RunStatus::kOk);
  const RunReply beyond = Run("reads_past_large_end");
  EXPECT_EQ(beyond.status, RunStatus::kRunError);
  EXPECT_THAT(beyond.error, HasSubstr("crashed with SIGSEGV"));
  ExpectStillWorks();
}

TEST_F(RunnerTest, InPlaceProgramsStartFromTheirInputs) {
  ASSERT_TRUE(
      Load("doubles_in_place", {Buffer(ElementType::kFloat32, true, true)}).ok);
  const RunReply reply = Run("doubles_in_place");
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
}

TEST_F(RunnerTest, InputsTurnPositiveWhereTheReferenceIsNotFinite) {
  const std::vector<BufferSpec> buffers = {
      Buffer(ElementType::kFloat32, true, false),
      Buffer(ElementType::kFloat32, false, true)};
  const LoadReply reply = Load("logarithm", buffers);
  EXPECT_TRUE(reply.ok);
  EXPECT_TRUE(reply.positive_inputs);
  EXPECT_EQ(Run("logarithm").status, RunStatus::kOk);
  EXPECT_EQ(Run("good").status, RunStatus::kWrongResult);
}

TEST_F(RunnerTest, InputsTurnPositiveWhereTheReferenceFaults) {
  const std::vector<BufferSpec> buffers = {
      Buffer(ElementType::kInt32, true, false),
      Buffer(ElementType::kInt32, true, false),
      Buffer(ElementType::kInt32, false, true)};
  const LoadReply reply = Load("divides", buffers);
  EXPECT_TRUE(reply.ok) << reply.error;
  EXPECT_TRUE(reply.positive_inputs);
  EXPECT_EQ(Run("divides").status, RunStatus::kOk);
  EXPECT_EQ(Run("divides_wrong_once").status, RunStatus::kWrongResult);
}

TEST_F(RunnerTest, InfinitiesInTheSamePlacesAreRight) {
  ASSERT_TRUE(
      Load("infinity_everywhere", {Buffer(ElementType::kFloat32, true, false),
                                   Buffer(ElementType::kFloat32, false, true)})
          .ok);
  EXPECT_EQ(Run("infinity_everywhere").status, RunStatus::kOk);
  EXPECT_EQ(Run("good").status, RunStatus::kWrongResult);
}

TEST_F(RunnerTest, LargeElementsGiveOthersNoRoom) {
  const std::vector<BufferSpec> buffers = {
      Buffer(ElementType::kFloat32, true, false),
      Buffer(ElementType::kFloat32, false, true)};
  ASSERT_TRUE(Load("masked", buffers).ok);
  EXPECT_EQ(Run("masked").status, RunStatus::kOk);
  const RunReply reply = Run("masked_wrong_once");
  EXPECT_EQ(reply.status, RunStatus::kWrongResult);
  EXPECT_THAT(reply.error, HasSubstr("element 5 is"));
}

TEST_F(RunnerTest, AnAlgorithmStatesWhatItRoundsByNeighbours) {
  LoadDouble();
  RunRequest request = Request("rounds_by_neighbours");
  EXPECT_EQ(Run(request).status, RunStatus::kWrongResult);
  request.spread = 1;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
}

TEST_F(RunnerTest, ManyParameters) {
  std::vector<BufferSpec> buffers(
      39, Buffer(ElementType::kFloat32, true, false, 1));
  buffers.push_back(Buffer(ElementType::kFloat32, false, true, 1));
  ASSERT_TRUE(Load("forty", buffers).ok);
  EXPECT_EQ(Run("forty").status, RunStatus::kOk);
}

TEST_F(RunnerTest, ReferenceThatFailsIsSaid) {
  const std::vector<BufferSpec> buffers = {
      Buffer(ElementType::kFloat32, true, false),
      Buffer(ElementType::kFloat32, false, true)};
  const LoadReply crashed = Load("crash", buffers);
  EXPECT_FALSE(crashed.ok);
  EXPECT_THAT(crashed.error, HasSubstr("SIGSEGV"));
  const LoadReply looped = Load("loops", buffers, 100);
  EXPECT_FALSE(looped.ok);
  EXPECT_THAT(looped.error, HasSubstr("longer than 100 ms"));
  LoadDouble();
  ExpectStillWorks();
}

TEST_F(RunnerTest, EndOfInputEndsTheRunnerAndItsChild) {
  absl::StatusOr<std::unique_ptr<Process>> started = starter_.Start(
      {std::string(TILEFARM_BIN_DIR) + "/tune-runner"}, RunnerEnvironment());
  ASSERT_TRUE(started.ok()) << started.status();
  const pid_t runner = (*started)->pid();
  LoadWorkload load;
  load.key = "k";
  load.symbol = "oracle_loops";
  load.artifact = object_;
  load.program.buffers = {Buffer(ElementType::kFloat32, true, false),
                          Buffer(ElementType::kFloat32, false, true)};
  load.limits.timeout_ms = 60000;
  ASSERT_TRUE((*started)
                  ->Write(static_cast<uint32_t>(RunnerFrame::kLoadWorkload),
                          Encode(load), absl::Seconds(5))
                  .ok());
  std::vector<int> children;
  Until([&] { return !(children = ChildrenOf(runner)).empty(); });
  ASSERT_THAT(children, testing::SizeIs(1));
  (*started)->CloseInput();
  const absl::StatusOr<Frame> frame = (*started)->Read(absl::Seconds(5));
  EXPECT_EQ(frame.status().code(), absl::StatusCode::kUnavailable);
  (*started)->Kill();
  EXPECT_NE(kill(children[0], 0), 0);
}

TEST_F(RunnerTest, MalformedFramesEndTheRunner) {
  ByteWriter claim;  // claims a list of buffers that is missing
  for (int i = 0; i < 3; ++i) claim.Str("");
  claim.U64(1);
  claim.U32(~uint32_t{0});
  for (const std::string& payload :
       {std::string(), std::string(1000, '\xff'), claim.Take()}) {
    for (RunnerFrame type : {RunnerFrame::kRun, RunnerFrame::kLoadWorkload,
                             static_cast<RunnerFrame>(999)}) {
      absl::StatusOr<std::unique_ptr<Process>> process =
          starter_.Start({std::string(TILEFARM_BIN_DIR) + "/tune-runner"},
                         RunnerEnvironment());
      ASSERT_TRUE(process.ok());
      ASSERT_TRUE(
          (*process)
              ->Write(static_cast<uint32_t>(type), payload, absl::Seconds(5))
              .ok());
      EXPECT_EQ((*process)->Read(absl::Seconds(10)).status().code(),
                absl::StatusCode::kUnavailable);
      EXPECT_EQ((*process)->Kill(), "exited with status 2");
    }
  }
}

TEST_F(RunnerTest, ARunnerThatIsKilledIsStartedAgain) {
  LoadDouble();
  for (pid_t pid : ProcessesWithParent(getpid())) kill(pid, SIGKILL);
  EXPECT_EQ(client_.Run(Request("good")).status().code(),
            absl::StatusCode::kUnavailable);
  LoadDouble();
  ExpectStillWorks();
}

TEST(ProcessTest, AProgramThatIsNotThereCannotBeStarted) {
  ProcessStarter starter;
  EXPECT_EQ(starter.Start({"/no/such/program"}, {}).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tilefarm::worker

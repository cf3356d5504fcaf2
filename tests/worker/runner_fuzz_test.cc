// tune-runner with damaged conversations: it answers or exits by itself, and
// never dies of a signal or hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "base/rng.h"
#include "worker/helper_environment.h"
#include "worker/process.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {
namespace {

constexpr uint64_t kSeed = 20240607;
constexpr int kConversations = 300;

std::string Damage(std::string bytes, Rng& rng) {
  const int edits = static_cast<int>(rng.Between(0, 4));
  for (int i = 0; i < edits && !bytes.empty(); ++i) {
    const size_t at = rng.Below(bytes.size());
    switch (rng.Below(4)) {
      case 0:
        bytes[at] = static_cast<char>(rng.Below(256));
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.insert(at, 1 + rng.Below(16), static_cast<char>(rng.Below(256)));
        break;
      default:
        bytes[at] = '\xff';
    }
  }
  return bytes;
}

std::string RandomPayload(RunnerFrame type, Rng& rng) {
  BufferSpec spec;
  spec.type = static_cast<ElementType>(rng.Between(1, 13));
  spec.elements = static_cast<uint64_t>(rng.Between(1, 100));
  spec.read = rng.Chance(0.5);
  spec.written = rng.Chance(0.5);
  spec.high = rng.Between(0, 7);
  switch (type) {
    case RunnerFrame::kLoadWorkload: {
      LoadWorkload load;
      load.key = "k";
      load.symbol = "f";
      load.artifact =
          "\x7f"
          "ELF, or not";
      load.program.buffers.assign(rng.Below(4), spec);
      load.limits.timeout_ms = 200;
      return Encode(load);
    }
    case RunnerFrame::kRun: {
      RunRequest run;
      run.key = rng.Chance(0.5) ? "k" : "l";
      run.artifact = "nothing";
      run.limits.timeout_ms = 200;
      return Encode(run);
    }
    case RunnerFrame::kCompare: {
      CompareRequest compare;
      compare.key = rng.Chance(0.5) ? "k" : "l";
      compare.baseline.artifact = compare.candidate.artifact = "nothing";
      compare.candidate_first = rng.Chance(0.5);
      compare.most_rounds = static_cast<uint32_t>(rng.Next());
      compare.limits.timeout_ms = 200;
      return Encode(compare);
    }
    case RunnerFrame::kCancel:
      return Encode(CancelRun{rng.Below(3)});
    default:
      return "";
  }
}

TEST(RunnerFuzzTest, DamagedConversations) {
  signal(SIGPIPE, SIG_IGN);
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  Rng rng(kSeed);
  ProcessStarter starter;
  int answers = 0;
  for (int i = 0; i < kConversations; ++i) {
    absl::StatusOr<std::unique_ptr<Process>> process = starter.Start(
        {std::string(TILEFARM_BIN_DIR) + "/tune-runner"}, RunnerEnvironment());
    ASSERT_TRUE(process.ok()) << process.status();
    const int messages = static_cast<int>(rng.Between(1, 4));
    for (int m = 0; m < messages; ++m) {
      const auto type = static_cast<RunnerFrame>(rng.Between(1, 9));
      // Damage that changes sizes is inside of a complete frame.
      if (!(*process)
               ->Write(static_cast<uint32_t>(type),
                       Damage(RandomPayload(type, rng), rng), absl::Seconds(5))
               .ok()) {
        break;
      }
    }
    (*process)->CloseInput();
    absl::StatusOr<Frame> frame = (*process)->Read(absl::Seconds(20));
    for (; frame.ok(); frame = (*process)->Read(absl::Seconds(20))) ++answers;
    EXPECT_EQ(frame.status().code(), absl::StatusCode::kUnavailable) << i;
    EXPECT_THAT((*process)->Kill(),
                testing::AnyOf("exited with status 0", "exited with status 2"))
        << i;
  }
  EXPECT_GT(answers, 0);
}

}  // namespace
}  // namespace tilefarm::worker

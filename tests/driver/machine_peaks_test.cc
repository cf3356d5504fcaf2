// Rates of this machine, and functions that run in this process. Times are not
// checked: the machine is shared.
#include "compiler/driver/machine_peaks.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_replace.h"
#include "compiler/driver/run_function.h"
#include "compiler/ir/parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"

namespace tilefarm::driver {
namespace {

using ::testing::HasSubstr;

target::Target Host(const char* text = "host,cores=2") {
  return *target::Parse(text);
}

TEST(MeasurePeaks, EveryRateIsPositive) {
  const auto peaks = MeasurePeaks(Host(), Clock::Real());
  ASSERT_TRUE(peaks.ok()) << peaks.status();
  // As JSON has them: only positive numbers are read back.
  const auto again = PeaksFromJson(PeaksToJson(*peaks));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(PeaksToJson(*again), PeaksToJson(*peaks));
  const cost_model::CoreModel core = CoreOf(*peaks, Host());
  EXPECT_GT(core.vector_ops, 0);
  EXPECT_GT(core.latency, 0);
  EXPECT_GT(core.bytes_from_memory_shared, 0);
  EXPECT_EQ(MeasurePeaks(Host("sim:sm_90a"), Clock::Real()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CoreOf, CyclesAreThoseOfTheClock) {
  MachinePeaks peaks;
  peaks.clock_hz = 2e9;
  peaks.float32_flops = 2e9 * 2 * 2 * 16;  // two multiply-adds a cycle
  peaks.latency_seconds = 2e-9;
  peaks.bytes_from_l1 = 2e9 * 128;
  peaks.bytes_from_l2 = 2e9 * 32;
  peaks.bytes_from_l3 = 2e9 * 16;
  peaks.bytes_from_memory = 2e9 * 8;
  peaks.all_bytes_from_memory = 2e9 * 12;
  target::Target target = Host();
  target.vector_bits = 512;
  target.cores = 4;
  const cost_model::CoreModel core = CoreOf(peaks, target);
  EXPECT_DOUBLE_EQ(core.vector_ops, 2);
  EXPECT_DOUBLE_EQ(core.loads, 2);
  EXPECT_DOUBLE_EQ(core.stores, 1);
  EXPECT_DOUBLE_EQ(core.latency, 4);
  EXPECT_DOUBLE_EQ(core.bytes_from_l2, 32);
  EXPECT_DOUBLE_EQ(core.bytes_from_l3, 16);
  EXPECT_DOUBLE_EQ(core.bytes_from_memory, 8);
  EXPECT_DOUBLE_EQ(core.bytes_from_memory_shared, 3);
}

TEST(PeaksFromJson, RejectsWhatIsNoPeaks) {
  EXPECT_FALSE(PeaksFromJson("").ok());
  EXPECT_FALSE(PeaksFromJson("[]").ok());
  EXPECT_FALSE(PeaksFromJson("{}").ok());
  MachinePeaks peaks;
  EXPECT_THAT(std::string(PeaksFromJson(PeaksToJson(peaks)).status().message()),
              HasSubstr("clock_hz is not a positive number"));
}

TEST(CachedPeaks, AreMeasuredOnce) {
  const testing::TempDir dir;
  const std::string folder = dir.File("cache");
  const auto first = CachedPeaks(folder, Host(), false, Clock::Real());
  ASSERT_TRUE(first.ok()) << first.status();
  // The stored ones are taken from now on, even if they are others.
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_TRUE(path.empty()) << entry.path();
    path = entry.path();
  }
  MachinePeaks other = *first;
  other.clock_hz = 12345;
  std::ofstream(path) << PeaksToJson(other);
  EXPECT_EQ(CachedPeaks(folder, Host(), false, Clock::Real())->clock_hz, 12345);
  // Another target has its own, and a damaged file is replaced.
  EXPECT_NE(
      CachedPeaks(folder, Host("host,cores=1"), false, Clock::Real())->clock_hz,
      12345);
  std::ofstream(path) << "{";
  EXPECT_NE(CachedPeaks(folder, Host(), false, Clock::Real())->clock_hz, 12345);
  std::ofstream(path) << PeaksToJson(other);
  EXPECT_NE(CachedPeaks(folder, Host(), true, Clock::Real())->clock_hz, 12345);
  // Without a place for the file they are measured each time.
  EXPECT_TRUE(CachedPeaks("/proc/nowhere", Host(), false, Clock::Real()).ok());
}

constexpr char kDense[] = R"(
@T.prim_func
def f(X: T.Buffer((8, 16), "TYPE"), W: T.Buffer((16, 16), "TYPE"), Y: T.Buffer((8, 16), "TYPE")):
    for i, j, k in T.grid(8, 16, 16):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.TYPE(0)
            Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vk, vj]
)";

TEST(RunnableFunction, RunsProgramsOfAllTypes) {
  for (const char* type :
       {"float32", "float64", "float16", "bfloat16", "int8", "int64"}) {
    const auto program =
        ir::ParseFunction(absl::StrReplaceAll(kDense, {{"TYPE", type}}));
    ASSERT_TRUE(program.ok()) << program.status();
    auto function = RunnableFunction::Make(**program, Host("host,cores=1"));
    ASSERT_TRUE(function.ok()) << function.status();
    EXPECT_TRUE(function->Run().ok());
    const auto time =
        TimeFunction(*function, absl::Milliseconds(1), Clock::Real());
    ASSERT_TRUE(time.ok()) << time.status();
    EXPECT_GT(time->median, 0);
    EXPECT_LE(time->low, time->high);
  }
}

TEST(RunnableFunction, RefusesWhatCannotRunHere) {
  const auto program =
      ir::ParseFunction(absl::StrReplaceAll(kDense, {{"TYPE", "float32"}}));
  EXPECT_EQ(
      RunnableFunction::Make(**program, Host("sim:sm_90a")).status().code(),
      absl::StatusCode::kInvalidArgument);
  auto many = std::make_shared<ir::PrimFunc>(**program);
  for (int i = 0; i < 64; ++i) {
    many->params.push_back(
        ir::MakeBuffer("p" + std::to_string(i), ir::DataType::Int(8), {1}));
  }
  EXPECT_THAT(
      std::string(RunnableFunction::Make(*many, Host()).status().message()),
      HasSubstr("67 parameters; at most 64"));
}

}  // namespace
}  // namespace tilefarm::driver

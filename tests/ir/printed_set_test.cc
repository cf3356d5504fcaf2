// The printed TVM set: every program parses, prints to a fixed point, and has
// the computed regions; the small ones compute the same as in TVM.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <map>
#include <span>
#include <sstream>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "tests/support/npz.h"
#include "tests/support/programs.h"

namespace tilefarm::ir {
namespace {

using ::tilefarm::testing::NpyArray;
using ::tilefarm::testing::PrintedFiles;
using ::tilefarm::testing::PrintedSetFolder;
using ::tilefarm::testing::ReadNpz;
using ::tilefarm::testing::ReadTextFile;

class PrintedSet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (PrintedSetFolder().empty()) {
      GTEST_SKIP() << "no ../shared/tvm-printed beside this checkout";
    }
  }
};

std::string WithoutRegions(const std::string& text) {
  std::istringstream lines(text);
  std::string out, line;
  while (std::getline(lines, line)) {
    if (line.find("T.reads(") == std::string::npos &&
        line.find("T.writes(") == std::string::npos) {
      out += line + "\n";
    }
  }
  return out;
}

TEST_P(PrintedSet, ParsesAndPrintsToAFixedPoint) {
  int passed = 0;
  const auto files = PrintedFiles(GetParam(), ".py");
  ASSERT_FALSE(files.empty());
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    const auto text = ReadTextFile(path);
    ASSERT_TRUE(text.ok());
    const auto module = ParseModule(*text, path);
    ASSERT_TRUE(module.ok()) << module.status().message();
    const std::string printed = Print(*module);
    const auto again = ParseModule(printed, "printed");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(Print(*again), printed);
    ASSERT_EQ(module->functions.size(), again->functions.size());
    for (size_t i = 0; i < module->functions.size(); ++i) {
      EXPECT_TRUE(StructuralEqual(*module->functions[i], *again->functions[i]));
    }
    // The computed regions are TVM's.
    const auto computed = ParseModule(WithoutRegions(*text), path);
    ASSERT_TRUE(computed.ok()) << computed.status().message();
    EXPECT_EQ(Print(*computed), printed);
    ++passed;
  }
  std::cout << GetParam() << ": " << passed << " of " << files.size() << "\n";
}

INSTANTIATE_TEST_SUITE_P(All, PrintedSet,
                         ::testing::Values("operators", "models", "small",
                                           "schedules"),
                         [](const auto& info) { return info.param; });

// Runs the module's function on the recorded inputs.
void ExpectRecordedResult(const std::string& path,
                          const std::map<std::string, NpyArray>& arrays) {
  SCOPED_TRACE(path);
  const auto text = ReadTextFile(path);
  ASSERT_TRUE(text.ok());
  const auto function = ParseFunction(*text, path);
  ASSERT_TRUE(function.ok()) << function.status().message();
  const size_t count = (*function)->params.size();
  ASSERT_EQ(arrays.size(), 2 * count);
  std::vector<NpyArray> buffers;
  std::vector<std::span<std::byte>> spans;
  for (size_t i = 0; i < count; ++i) {
    buffers.push_back(arrays.at("arr_" + std::to_string(i)));
  }
  for (NpyArray& buffer : buffers) spans.emplace_back(buffer.data);
  const absl::Status status = Interpret(**function, spans);
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < count; ++i) {
    const std::vector<double> got = buffers[i].AsDoubles();
    const std::vector<double> want =
        arrays.at("arr_" + std::to_string(count + i)).AsDoubles();
    ASSERT_EQ(got.size(), want.size());
    for (size_t j = 0; j < got.size(); ++j) {
      ASSERT_NEAR(got[j], want[j], 1e-3) << "buffer " << i << " at " << j;
    }
  }
}

TEST(PrintedSetResults, SmallProgramsAndTheirSchedules) {
  if (PrintedSetFolder().empty()) {
    GTEST_SKIP() << "no ../shared/tvm-printed beside this checkout";
  }
  int programs = 0;
  int schedules = 0;
  for (const std::string& path : PrintedFiles("small", ".py")) {
    const std::string stem = std::filesystem::path(path).stem().string();
    const auto arrays = ReadNpz(path.substr(0, path.size() - 3) + ".npz");
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    ExpectRecordedResult(path, *arrays);
    ++programs;
    for (const std::string& scheduled : PrintedFiles("schedules", ".py")) {
      const std::string name = std::filesystem::path(scheduled).stem().string();
      if (name.substr(0, name.rfind('_')) != stem) continue;
      ExpectRecordedResult(scheduled, *arrays);
      ++schedules;
    }
  }
  EXPECT_GT(programs, 0);
  EXPECT_GT(schedules, 0);
  std::cout << "programs: " << programs << ", schedules: " << schedules << "\n";
}

}  // namespace
}  // namespace tilefarm::ir

// Features of every program and schedule in the printed TVM set.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "compiler/ir/parser.h"
#include "cost_model/features.h"
#include "gtest/gtest.h"

namespace tilefarm::cost_model {
namespace {

namespace fs = std::filesystem;

const fs::path kPrinted =
    fs::path(TILEFARM_SOURCE_DIR) / "../shared/tvm-printed";

std::vector<fs::path> ProgramsIn(const char* folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kPrinted / folder)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > 3 && name.ends_with(".py") &&
        !name.ends_with(".trace.py")) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class PrintedProgramsTest : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Folders, PrintedProgramsTest,
                         ::testing::Values("operators", "models", "small",
                                           "schedules"),
                         [](const auto& info) { return info.param; });

TEST_P(PrintedProgramsTest, HaveFiniteFeatures) {
  if (!fs::exists(kPrinted)) {
    GTEST_SKIP() << kPrinted << " is missing";
  }
  target::Target target;
  target.cores = 4;
  int functions = 0;
  for (const fs::path& file : ProgramsIn(GetParam())) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in),
                           std::istreambuf_iterator<char>()};
    const auto module = ir::ParseModule(text, file.string());
    // The parser's tests check which programs it accepts.
    if (!module.ok()) {
      std::printf("skipped %s\n", file.filename().c_str());
      continue;
    }
    for (const ir::PrimFuncPtr& function : module->functions) {
      const FeatureRows features = ExtractFeatures(*function, target);
      ++functions;
      EXPECT_GT(features.rows, 0) << file;
      ASSERT_EQ(features.values.size(),
                static_cast<size_t>(features.rows) * kColumns);
      for (size_t i = 0; i < features.values.size(); ++i) {
        ASSERT_TRUE(std::isfinite(features.values[i]))
            << file << " " << FeatureNames()[i % kColumns];
        // Logarithms of quantities that a machine can have.
        ASSERT_LT(std::abs(features.values[i]), 200)
            << file << " " << FeatureNames()[i % kColumns];
      }
      EXPECT_GE(CountFlops(*function), 0) << file;
    }
  }
  std::printf("%d functions\n", functions);
  EXPECT_GT(functions, 0);
}

}  // namespace
}  // namespace tilefarm::cost_model

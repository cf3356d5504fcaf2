// ONNX's backend tests as Debian packages them (libonnx-testdata).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/onnx/backend_cases.h"

namespace tilefarm::testing {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr char kData[] = "/usr/share/libonnx-testdata/data/";

// The names in a list of this folder, without comments and empty lines.
std::vector<std::string> ReadList(const std::string& file) {
  std::ifstream stream(absl::StrCat(TILEFARM_SOURCE_DIR, "/tests/onnx/", file));
  EXPECT_TRUE(stream) << file;
  std::vector<std::string> names;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && !absl::StartsWith(line, "#")) names.push_back(line);
  }
  return names;
}

// "node/test_abs" and so on, in a fixed order, without those of
// wrong_cases.txt.
std::vector<std::string> Cases() {
  const std::vector<std::string> wrong = ReadList("wrong_cases.txt");
  std::vector<std::string> cases;
  for (const std::string folder :
       {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    for (const std::string& name : CaseNames(kData + folder)) {
      std::string path = absl::StrCat(folder, "/", name);
      if (!absl::c_linear_search(wrong, path)) cases.push_back(std::move(path));
    }
  }
  return cases;
}

struct Outcomes {
  int passed = 0;
  std::vector<std::string> unsupported;  // names
  std::vector<std::string> failed;       // names with the reason
};

void RunOne(const std::string& name, CaseMode mode, Outcomes& outcomes) {
  const CaseOutcome outcome = RunBackendCase(kData + name, mode);
  switch (outcome.result) {
    case CaseResult::kPassed:
      ++outcomes.passed;
      break;
    case CaseResult::kUnsupported:
      outcomes.unsupported.push_back(name);
      break;
    case CaseResult::kFailed:
      outcomes.failed.push_back(absl::StrCat(name, ": ", outcome.reason));
      break;
  }
}

TEST(OnnxBackendTest, TheInterpreterPassesAllSupportedCases) {
  const std::vector<std::string> cases = Cases();
  // Debian 12's libonnx-testdata 1.12 has this many.
  ASSERT_GE(cases.size(), 1000u) << "libonnx-testdata is not installed";
  Outcomes outcomes;
  for (const std::string& name : cases) {
    RunOne(name, CaseMode::kInterpreted, outcomes);
  }
  EXPECT_THAT(outcomes.failed, IsEmpty());
  std::vector<std::string> expected = ReadList("unsupported_cases.txt");
  std::sort(expected.begin(), expected.end());
  EXPECT_THAT(outcomes.unsupported, ElementsAreArray(expected))
      << "if a listed case passes now, take it from unsupported_cases.txt";
}

// A third of the cases, in two tests, compiled.
void RunCompiled(size_t part) {
  const std::vector<std::string> cases = Cases();
  const std::vector<std::string> unsupported =
      ReadList("unsupported_cases.txt");
  const std::set<std::string> left_out(unsupported.begin(), unsupported.end());
  Outcomes outcomes;
  for (size_t i = 3 * part; i < cases.size(); i += 6) {
    if (!left_out.contains(cases[i])) {
      RunOne(cases[i], CaseMode::kCompiled, outcomes);
    }
  }
  EXPECT_GE(outcomes.passed, 100);
  EXPECT_THAT(outcomes.failed, IsEmpty());
  EXPECT_THAT(outcomes.unsupported, IsEmpty());
}

TEST(OnnxBackendTest, CompiledCodePassesEverySixthCaseFromTheFirst) {
  RunCompiled(0);
}

TEST(OnnxBackendTest, CompiledCodePassesEverySixthCaseFromTheFourth) {
  RunCompiled(1);
}

}  // namespace
}  // namespace tilefarm::testing

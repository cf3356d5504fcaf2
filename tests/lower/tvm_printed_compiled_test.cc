// The printed TVM set, compiled without changes, gives the recorded results;
// every operator and model function can be lowered.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/parser.h"
#include "compiler/lower/pipeline.h"
#include "compiler/target/target.h"
#include "tests/lower/compiled_program.h"
#include "tests/support/npz.h"
#include "tests/support/programs.h"

namespace tilefarm::testing {
namespace {

constexpr double kTolerance = 1e-3;

std::string BaseName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return path.substr(slash == std::string::npos ? 0 : slash + 1);
}

// Empty if the program computes the recorded arrays.
std::string Check(const std::string& program, const std::string& data) {
  const auto text = ReadTextFile(program);
  if (!text.ok()) return text.status().ToString();
  const auto module = ir::ParseModule(*text, BaseName(program));
  if (!module.ok()) return module.status().ToString();
  const auto compiled = CompiledProgram::Compile(*module, "host");
  if (!compiled.ok()) return compiled.status().ToString();
  auto arrays = ReadNpz(data);
  if (!arrays.ok()) return arrays.status().ToString();
  const size_t count = module->functions[0]->params.size();
  std::vector<std::span<std::byte>> buffers;
  for (size_t i = 0; i < count; ++i) {
    const auto found = arrays->find(absl::StrCat("arr_", i));
    if (found == arrays->end()) return absl::StrCat("no arr_", i);
    buffers.emplace_back(found->second.data);
  }
  if (const auto run = compiled->Run(buffers); !run.ok()) {
    return run.ToString();
  }
  for (size_t i = 0; i < count; ++i) {
    const std::vector<double> got =
        arrays->at(absl::StrCat("arr_", i)).AsDoubles();
    const auto found = arrays->find(absl::StrCat("arr_", count + i));
    if (found == arrays->end()) return absl::StrCat("no arr_", count + i);
    const std::vector<double> expected = found->second.AsDoubles();
    if (got.size() != expected.size()) return "sizes differ";
    for (size_t e = 0; e < got.size(); ++e) {
      if (!(std::abs(got[e] - expected[e]) <= kTolerance) &&
          !(got[e] == expected[e])) {
        return absl::StrCat("buffer ", i, ", element ", e, ": ", got[e],
                            " instead of ", expected[e]);
      }
    }
  }
  return "";
}

// `stem`: the program's name without the number of its schedule.
std::string StemOf(const std::string& name) {
  return name.substr(0, name.find_first_of("_."));
}

void CheckFolder(const std::string& folder) {
  const std::string root = PrintedSetFolder();
  if (root.empty()) GTEST_SKIP() << "this checkout has no printed programs";
  const std::vector<std::string> files = PrintedFiles(folder, ".py");
  ASSERT_FALSE(files.empty());
  int passed = 0;
  for (const std::string& file : files) {
    const std::string data =
        absl::StrCat(root, "/small/", StemOf(BaseName(file)), ".npz");
    const std::string problem = Check(file, data);
    EXPECT_EQ(problem, "") << file;
    passed += problem.empty();
  }
  std::cout << folder << ": " << passed << " of " << files.size()
            << " programs give the recorded result\n";
}

TEST(TvmPrintedCompiledTest, SmallProgramsGiveTheRecordedResult) {
  CheckFolder("small");
}

TEST(TvmPrintedCompiledTest, ScheduledModulesGiveTheRecordedResult) {
  CheckFolder("schedules");
}

TEST(TvmPrintedCompiledTest, OperatorsAndModelsLower) {
  if (PrintedSetFolder().empty()) {
    GTEST_SKIP() << "this checkout has no printed programs";
  }
  const auto target = target::Parse("x86-64:x86-64-v4,cores=2");
  ASSERT_TRUE(target.ok()) << target.status();
  int passed = 0, all = 0;
  for (const char* folder : {"operators", "models"}) {
    for (const std::string& file : PrintedFiles(folder, ".py")) {
      const auto text = ReadTextFile(file);
      ASSERT_TRUE(text.ok()) << text.status();
      const auto module = ir::ParseModule(*text, file);
      ASSERT_TRUE(module.ok()) << module.status();
      for (const ir::PrimFuncPtr& function : module->functions) {
        ++all;
        const auto lowered = lower::Lower(*function, *target);
        EXPECT_TRUE(lowered.ok()) << file << ": " << lowered.status();
        passed += lowered.ok();
      }
    }
  }
  std::cout << passed << " of " << all << " functions lower\n";
}

}  // namespace
}  // namespace tilefarm::testing

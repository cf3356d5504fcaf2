// Every trace of the printed TVM set, and of tests/gpu/tvm/, applied to its
// program: the module equals TVM's and computes the recorded result.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/structural.h"
#include "tests/schedule/schedule_testing.h"
#include "tests/support/npz.h"
#include "tests/support/programs.h"

namespace tilefarm::schedule {
namespace {

using ::tilefarm::testing::NpyArray;
using ::tilefarm::testing::PrintedSetFolder;
using ::tilefarm::testing::ReadNpz;
using ::tilefarm::testing::ReadTextFile;

// The largest difference from the recorded buffers after the call.
absl::StatusOr<double> WorstError(
    const ir::PrimFunc& function,
    const std::map<std::string, NpyArray>& arrays) {
  std::vector<std::vector<std::byte>> data;
  std::vector<std::span<std::byte>> spans;
  const size_t n = function.params.size();
  for (size_t i = 0; i < n; ++i) {
    data.push_back(arrays.at("arr_" + std::to_string(i)).data);
  }
  for (auto& bytes : data) spans.push_back(bytes);
  const absl::Status status = ir::Interpret(function, spans);
  if (!status.ok()) return status;
  double worst = 0;
  for (size_t i = 0; i < n; ++i) {
    NpyArray got = arrays.at("arr_" + std::to_string(n + i));
    const std::vector<double> want = got.AsDoubles();
    got.data = data[i];
    const std::vector<double> values = got.AsDoubles();
    for (size_t e = 0; e < want.size(); ++e) {
      const double error = std::abs(values[e] - want[e]);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  }
  return worst;
}

// `folder`: traces in schedules/, programs and results in small/.
void ApplyAll(const std::string& folder) {
  int total = 0;
  int equal = 0;
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder + "/schedules")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::string name = path.filename();
    const size_t ending = name.find(".trace.py");
    if (ending == std::string::npos) continue;
    name.resize(ending);
    SCOPED_TRACE(name);
    ++total;
    const std::string small =
        folder + "/small/" + name.substr(0, name.find('_'));
    const auto text = ReadTextFile(path);
    ASSERT_TRUE(text.ok()) << text.status();
    const auto trace = Trace::Parse(*text);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const std::string printed = trace->Print();
    const auto reparsed = Trace::Parse(printed);
    ASSERT_TRUE(reparsed.ok()) << reparsed.status();
    EXPECT_EQ(reparsed->Print(), printed);

    const auto schedule =
        Replay(*trace, ModuleOf(*ReadTextFile(small + ".py")));
    if (!schedule.ok()) {
      ADD_FAILURE() << schedule.status();
      continue;
    }
    EXPECT_EQ(schedule->trace().Print(), printed);
    const ir::PrimFunc& got = *schedule->module().functions[0];
    const ir::IRModule want =
        ModuleOf(*ReadTextFile(folder + "/schedules/" + name + ".py"));
    const bool same = ir::StructuralEqual(got, *want.functions[0]);
    EXPECT_TRUE(same) << ir::Print(got);
    equal += same;

    const auto arrays = ReadNpz(small + ".npz");
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    const auto error = WorstError(got, *arrays);
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(*error, 1e-3);
  }
  std::cout << total << " traces applied, " << equal
            << " give the very module that TVM made\n";
  EXPECT_EQ(equal, total);
  EXPECT_GT(total, 0);
}

TEST(PrintedTracesTest, ApplyAsTheyStand) {
  const std::string folder = PrintedSetFolder();
  if (folder.empty()) GTEST_SKIP() << "the printed set is not here";
  ApplyAll(folder);
}

TEST(PrintedTracesTest, OfGpusApplyAsTheyStand) {
  ApplyAll(TILEFARM_SOURCE_DIR "/tests/gpu/tvm");
}

}  // namespace
}  // namespace tilefarm::schedule

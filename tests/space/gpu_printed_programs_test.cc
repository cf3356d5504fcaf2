// The default schedule of a GPU for every program of the printed TVM set: the
// small ones compute the recorded results, the others are bound and fit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <span>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/space/design_space.h"
#include "compiler/space/gpu/kernels.h"
#include "compiler/target/target.h"
#include "tests/support/npz.h"
#include "tests/support/programs.h"

namespace tilefarm::space {
namespace {

using ::tilefarm::testing::NpyArray;

constexpr double kTolerance = 1e-3;

ir::PrimFuncPtr Scheduled(const std::string& path) {
  const target::Target target = *target::Parse("cuda:sm_90a");
  const auto text = ::tilefarm::testing::ReadTextFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  const auto program = ir::ParseFunction(*text, path);
  EXPECT_TRUE(program.ok()) << program.status();
  const auto schedule = DefaultSchedule(ir::IRModule{{*program}}, target,
                                        ir::FloatRule::kAsWritten);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  const ir::PrimFuncPtr scheduled = schedule->module().functions[0];
  const absl::Status kernels = CheckKernels(*scheduled, *target.gpu);
  EXPECT_TRUE(kernels.ok()) << kernels;
  return scheduled;
}

TEST(GpuPrintedProgramsTest, SmallOnesComputeTheRecordedResults) {
  const std::string folder = ::tilefarm::testing::PrintedSetFolder();
  if (folder.empty()) GTEST_SKIP() << "the printed set is not here";
  for (const std::string& path :
       ::tilefarm::testing::PrintedFiles("small", ".py")) {
    SCOPED_TRACE(path);
    const ir::PrimFuncPtr scheduled = Scheduled(path);
    const auto read_arrays =
        ::tilefarm::testing::ReadNpz(path.substr(0, path.size() - 3) + ".npz");
    ASSERT_TRUE(read_arrays.ok()) << read_arrays.status();
    const std::map<std::string, NpyArray>& arrays = *read_arrays;
    const size_t n = scheduled->params.size();
    std::vector<std::vector<std::byte>> data;
    for (size_t i = 0; i < n; ++i) {
      data.push_back(arrays.at("arr_" + std::to_string(i)).data);
    }
    std::vector<std::span<std::byte>> spans(data.begin(), data.end());
    const absl::Status status = ir::Interpret(*scheduled, spans);
    ASSERT_TRUE(status.ok()) << status << ir::Print(*scheduled);
    for (size_t i = 0; i < n; ++i) {
      NpyArray got = arrays.at("arr_" + std::to_string(n + i));
      const std::vector<double> want = got.AsDoubles();
      got.data = data[i];
      const std::vector<double> values = got.AsDoubles();
      for (size_t e = 0; e < want.size(); ++e) {
        ASSERT_NEAR(values[e], want[e], kTolerance)
            << "buffer " << i << " element " << e << ir::Print(*scheduled);
      }
    }
  }
}

TEST(GpuPrintedProgramsTest, LargeOnesAreBoundAndFit) {
  const std::string folder = ::tilefarm::testing::PrintedSetFolder();
  if (folder.empty()) GTEST_SKIP() << "the printed set is not here";
  for (const char* part : {"operators", "models"}) {
    for (const std::string& path :
         ::tilefarm::testing::PrintedFiles(part, ".py")) {
      SCOPED_TRACE(path);
      Scheduled(path);
    }
  }
}

}  // namespace
}  // namespace tilefarm::space

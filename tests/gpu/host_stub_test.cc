// The host's part of an artifact of a GPU (codegen/host_stub.h).
#include "compiler/codegen/host_stub.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/c_header.h"
#include "compiler/codegen/link.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/cuda_functions.h"

namespace tilefarm::codegen {
namespace {

using ::testing::HasSubstr;

TEST(HostStub, IsDeterministicAndLinksToAnArchive) {
  const std::vector<DeviceFunction> functions = {ThreeKernels(), OneKernel()};
  const auto first = EmitHostStub(functions, kImage, {Cuda()});
  const auto second = EmitHostStub(functions, kImage, {Cuda()});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, *second);
  EXPECT_TRUE(LinkArchive({&*first, 1}, Cuda().HostPart()).ok());
}

TEST(HostStub, HeaderDeclaresItsFunctions) {
  auto function = std::make_shared<ir::PrimFunc>();
  function->params = {ir::MakeBuffer("x", ir::DataType::Float(32), {64}),
                      ir::MakeBuffer("y", ir::DataType::Float(32), {8, 8})};
  function->body =
      ir::MakeStore(function->params[1], {ir::IntConst(0), ir::IntConst(0)},
                    ir::FloatConst(1, ir::DataType::Float(32)));
  const LoweredFunction named = {function, "f"};
  const std::vector<Signature> functions = {SignatureOf(named, named, Cuda())};
  const std::string header = CHeader(functions, Cuda());
  EXPECT_THAT(header,
              HasSubstr("1: y, float32 [8, 8], row-major, 256 bytes, written"));
  EXPECT_THAT(header,
              HasSubstr("\nint f(const void* x_0, void* y_1);\n"
                        "int f_on(void* stream, const void* x_0, void* y_1);\n"
                        "const char* f_error(void);\n"));
  EXPECT_THAT(header, HasSubstr("NAME_on(stream, ...) enqueues"));
  const std::string path =
      absl::StrCat(testing::TempDir(), "/header_", getpid(), ".h");
  std::ofstream(path) << header
                      << CHeader(functions, *target::Parse("sim:sm_90a"));
  EXPECT_EQ(std::system(
                absl::StrCat("cc -std=c99 -Wall -Wextra -pedantic -Werror -x c "
                             "-fsyntax-only -include ",
                             path, " /dev/null")
                    .c_str()),
            0);
  unlink(path.c_str());
}

// Launches are part of what an artifact computes.
TEST(HostStub, DigestCoversLaunches) {
  DeviceFunction function = OneKernel();
  const auto digest = [&] {
    const auto stub = EmitHostStub({&function, 1}, kImage, {Cuda()});
    EXPECT_TRUE(stub.ok()) << stub.status();
    const auto bytes = LinkSharedObject({&*stub, 1}, Cuda().HostPart());
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return CodeDigest(*bytes).value_or("");
  };
  const std::string first = digest();
  EXPECT_EQ(digest(), first);
  function.kernels[0].grid[0] = 2;
  EXPECT_NE(digest(), first);
}

TEST(HostStub, WrongDescriptionsAreErrors) {
  const auto error = [](const DeviceFunction& function,
                        const std::string& image = kImage) {
    return EmitHostStub({&function, 1}, image, {Cuda()}).status().ToString();
  };
  DeviceFunction wrong = OneKernel();
  wrong.kernels[0].arguments = {1};
  EXPECT_EQ(error(wrong),
            "INTERNAL: the kernel 'add' of 'g': an argument with number 1 of 1 "
            "buffers");
  wrong = OneKernel();
  wrong.kernels[0].block = {64, 32, 1};
  EXPECT_EQ(error(wrong),
            "INTERNAL: the kernel 'add' of 'g': more threads than 1024, or "
            "none");
  EXPECT_EQ(error(OneKernel(228 << 10)),
            "INTERNAL: the kernel 'add' of 'g': 233472 bytes of shared memory; "
            "the target has 232448");
  EXPECT_EQ(error(OneKernel(), ""),
            "INTERNAL: an image is for GPUs, and not for simulated ones");
  DeviceFunction taken = OneKernel();
  taken.symbol = "g_on";
  const std::vector<DeviceFunction> both = {OneKernel(), taken};
  EXPECT_EQ(EmitHostStub(both, kImage, {Cuda()}).status().ToString(),
            "INVALID_ARGUMENT: two functions have the symbol 'g_on'");
}

}  // namespace
}  // namespace tilefarm::codegen

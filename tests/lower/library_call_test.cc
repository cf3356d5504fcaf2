// Programs with library calls compute the same as the interpreter if this
// machine has the library, and do not load if it is missing.
#include "compiler/ir/library_call.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/device_libraries.h"
#include "base/rng.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/oracle/oracle.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"
#include "tests/lower/compiled_program.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

struct Form {
  const char* a;
  const char* b;
  const char* a_at;
  const char* b_at;
};

// A times B in every form, twice, with an epilogue.
constexpr Form kForms[] = {
    {"2, 9, 21", "2, 21, 35", "vb, vi, vk", "vb, vk, vj"},
    {"2, 9, 21", "2, 35, 21", "vb, vi, vk", "vb, vj, vk"},
    {"2, 21, 9", "2, 21, 35", "vb, vk, vi", "vb, vk, vj"},
    {"2, 21, 9", "2, 35, 21", "vb, vk, vi", "vb, vj, vk"},
    {"2, 9, 21", "21, 35", "vb, vi, vk", "vk, vj"},
};

std::string Text(const Form& form) {
  return absl::Substitute(R"(
@T.prim_func
def main(A: T.Buffer(($0), "float32"), B: T.Buffer(($1), "float32"), D: T.Buffer((2, 9, 35), "float32")):
    C = T.alloc_buffer((2, 9, 35))
    for b, i, j, k in T.grid(2, 9, 35, 21):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = T.float32(0)
            C[vb, vi, vj] = C[vb, vi, vj] + A[$2] * B[$3]
    for b, i, j in T.grid(2, 9, 35):
        with T.block("D"):
            vb, vi, vj = T.axis.remap("SSS", [b, i, j])
            D[vb, vi, vj] = T.max(C[vb, vi, vj], T.float32(0))
)",
                          form.a, form.b, form.a_at, form.b_at);
}

ir::IRModule Scheduled(const std::string& text, const std::string& kernel) {
  schedule::Schedule schedule(ir::IRModule{{*ir::ParseFunction(text)}});
  EXPECT_TRUE(schedule.CallLibrary(*schedule.GetBlock("C"), kernel).ok());
  return schedule.module();
}

const char* FileOf(std::string_view library) {
  for (const DeviceLibrary& one : kDeviceLibraries) {
    if (one.name == library) return one.file;
  }
  return "";
}

std::vector<std::vector<float>> Inputs(const ir::PrimFunc& function,
                                       uint64_t seed) {
  Rng rng(seed);
  std::vector<std::vector<float>> buffers;
  for (const ir::Buffer& buffer : function.params) {
    std::vector<float>& values =
        buffers.emplace_back(static_cast<size_t>(buffer->num_elements()));
    for (float& value : values) {
      value = static_cast<float>(rng.Below(2001)) / 1000 - 1;
    }
  }
  // Make elements that are not written visible.
  for (float& value : buffers.back()) value = NAN;
  return buffers;
}

std::vector<std::span<std::byte>> Bytes(
    std::vector<std::vector<float>>& buffers) {
  std::vector<std::span<std::byte>> bytes;
  for (std::vector<float>& buffer : buffers) {
    bytes.push_back(std::as_writable_bytes(std::span(buffer)));
  }
  return bytes;
}

TEST(LibraryCall, ComputesWhatTheProgramSays) {
  for (const ir::LibraryKernel& kernel : ir::LibraryKernels()) {
    if (dlopen(FileOf(kernel.library), RTLD_NOW | RTLD_LOCAL) == nullptr) {
      std::printf("not here: %s\n", FileOf(kernel.library));
      continue;
    }
    for (const Form& form : kForms) {
      for (const char* target : {"host,cores=1", "host,cores=2"}) {
        SCOPED_TRACE(absl::StrCat(std::string(kernel.name), " ", form.a_at, " ",
                                  form.b_at, " ", target));
        const ir::IRModule module =
            Scheduled(Text(form), std::string(kernel.name));
        const ir::PrimFunc& function = *module.functions[0];
        const auto compiled = CompiledProgram::Compile(module, target);
        ASSERT_TRUE(compiled.ok()) << compiled.status();
        auto expected = Inputs(function, 7);
        auto found = expected;
        const auto expected_bytes = Bytes(expected);
        ASSERT_TRUE(ir::Interpret(function, expected_bytes).ok());
        ASSERT_TRUE(compiled->Run(Bytes(found)).ok());
        for (size_t i = 0; i < expected.back().size(); ++i) {
          ASSERT_NEAR(found.back()[i], expected.back()[i], 1e-4) << i;
        }
      }
    }
  }
}

TEST(LibraryCall, TheOracleDoesNotCallIt) {
  const ir::IRModule module = Scheduled(Text(kForms[0]), "openblas.sgemm");
  const auto artifact =
      oracle::Compile(*module.functions[0], *target::Parse("host,cores=1"));
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_THAT(artifact->shared_object, ::testing::Not(HasSubstr("openblas")));
}

TEST(LibraryCall, AnArtifactWithoutItsLibraryDoesNotLoad) {
  driver::CompileOptions options;
  options.target = *target::Parse("host,cores=1");
  auto artifact =
      driver::Compile(Scheduled(Text(kForms[0]), "openblas.sgemm"), options);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  // It names the library it needs; a non-existing name simulates its absence.
  std::string bytes = artifact->shared_object;
  const std::string name = "libopenblas.so.0";
  const size_t at = bytes.find(name);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, name.size(), "libopenblas.so.X");
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/library-", getpid(), ".so");
  std::ofstream(path, std::ios::binary) << bytes;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* error = dlerror();
  std::remove(path.c_str());
  ASSERT_EQ(handle, nullptr);
  EXPECT_THAT(std::string(error), HasSubstr("libopenblas.so.X"));
}

TEST(LibraryCall, OtherArtifactsNeedNoLibrary) {
  driver::CompileOptions options;
  options.target = *target::Parse("host,cores=1");
  const auto artifact = driver::Compile(
      ir::IRModule{{*ir::ParseFunction(Text(kForms[0]))}}, options);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  for (const DeviceLibrary& library : kDeviceLibraries) {
    EXPECT_THAT(artifact->shared_object,
                ::testing::Not(HasSubstr(library.file)));
  }
}

}  // namespace
}  // namespace tilefarm::testing

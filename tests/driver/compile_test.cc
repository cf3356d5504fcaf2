// driver::Compile, from text to a library that is called.
#include "compiler/driver/compile.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "compiler/ir/parser.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/codegen/kernel.h"

namespace tilefarm::driver {
namespace {

constexpr char kMatmulRelu[] = R"(
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 128), "float32"), B: T.Buffer((128, 96), "float32"),
             C: T.Buffer((64, 96), "float32")):
        Y = T.alloc_buffer((64, 96), "float32")
        for i, j, k in T.grid(64, 96, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(64, 96):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
)";

CompileOptions Options() {
  CompileOptions options;
  options.target = *target::Parse("host,cores=1");
  return options;
}

absl::StatusOr<Artifact> CompileText(const char* text,
                                     const CompileOptions& options) {
  TF_ASSIGN_OR_RETURN(const ir::IRModule module, ir::ParseModule(text));
  return Compile(module, options);
}

TEST(Compile, MatmulReluComputesTheRightThing) {
  const auto artifact = CompileText(kMatmulRelu, Options());
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_THAT(artifact->symbols, testing::ElementsAre("tilefarm_main"));
  EXPECT_THAT(artifact->header, testing::HasSubstr("int tilefarm_main("));
  const auto kernel = codegen::Kernel::Load(artifact->shared_object);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Rng rng(7);
  std::vector<float> a(64 * 128), b(128 * 96), c(64 * 96, NAN);
  for (float& x : a) x = static_cast<float>(rng.Uniform() * 2 - 1);
  for (float& x : b) x = static_cast<float>(rng.Uniform() * 2 - 1);
  ASSERT_EQ(kernel->Call("tilefarm_main", a.data(), b.data(), c.data()), 0);
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 96; ++j) {
      double sum = 0;
      for (int k = 0; k < 128; ++k) {
        sum += static_cast<double>(a[i * 128 + k]) * b[k * 96 + j];
      }
      const double expected = std::max(sum, 0.0);
      ASSERT_NEAR(c[i * 96 + j], expected, 1e-4);
    }
  }
}

TEST(Compile, SameInputSameBytes) {
  const auto first = CompileText(kMatmulRelu, Options());
  const auto second = CompileText(kMatmulRelu, Options());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->shared_object, second->shared_object);
  EXPECT_EQ(first->code_digest, second->code_digest);
}

TEST(Compile, SymbolsAreCheckedAndNamed) {
  CompileOptions options = Options();
  options.symbol = "my_kernel";
  const auto named = CompileText(kMatmulRelu, options);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(named->symbols, testing::ElementsAre("my_kernel"));
  for (const char* bad : {"9lives", "a-b", "memset", ""}) {
    options.symbol = bad;
    if (*bad == '\0') continue;  // empty means the function's own
    EXPECT_EQ(CompileText(kMatmulRelu, options).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
  EXPECT_EQ(Compile(ir::IRModule{}, Options()).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto module = *ir::ParseModule(kMatmulRelu);
  auto twin = std::make_shared<ir::PrimFunc>(*module.functions[0]);
  twin->name = "twin";
  module.functions.push_back(twin);
  options.symbol = "one_name";
  EXPECT_EQ(Compile(module, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// As the header declares them.
struct ParameterInfo {
  const char* name;
  int32_t dtype, rank;
  const int64_t *shape, *strides;
  int64_t offset, bytes, packed_bytes;
  int32_t written, alignment;
};
struct FunctionInfo {
  size_t size;
  const char *name, *target;
  int32_t threads, parameter_count;
  const ParameterInfo* parameters;
};

const FunctionInfo* InfoOf(const codegen::Kernel& kernel,
                           const std::string& symbol) {
  using Get = const FunctionInfo* (*)();
  const auto get =
      reinterpret_cast<Get>(dlsym(kernel.handle(), symbol.c_str()));
  EXPECT_NE(get, nullptr) << symbol;
  return get == nullptr ? nullptr : get();
}

TEST(Compile, FunctionsDescribeThemselves) {
  const auto artifact = CompileText(kMatmulRelu, Options());
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  const auto kernel = codegen::Kernel::Load(artifact->shared_object);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const FunctionInfo* info = InfoOf(*kernel, "tilefarm_main_info");
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->size, sizeof(FunctionInfo));
  EXPECT_STREQ(info->name, "tilefarm_main");
  EXPECT_EQ(info->target, Options().target.Key());
  EXPECT_EQ(info->threads, 1);
  ASSERT_EQ(info->parameter_count, 3);
  const ParameterInfo& b = info->parameters[1];
  EXPECT_STREQ(b.name, "B");
  EXPECT_EQ(b.dtype, 1);
  ASSERT_EQ(b.rank, 2);
  EXPECT_EQ(b.shape[0], 128);
  EXPECT_EQ(b.shape[1], 96);
  EXPECT_EQ(b.strides[0], 96);
  EXPECT_EQ(b.strides[1], 1);
  EXPECT_EQ(b.offset, 0);
  EXPECT_EQ(b.bytes, 128 * 96 * 4);
  EXPECT_EQ(b.packed_bytes, 0);
  EXPECT_EQ(b.written, 0);
  EXPECT_EQ(b.alignment, 4);
  EXPECT_EQ(info->parameters[2].written, 1);
}

TEST(Compile, ThreadsAreThoseOfParallelLoops) {
  CompileOptions options = Options();
  options.target = *target::Parse("host,cores=3");
  const auto threads = [&](const char* trace) {
    auto module = ir::ParseModule(kMatmulRelu);
    const auto scheduled =
        schedule::Replay(*schedule::Trace::Parse(trace), *module);
    EXPECT_TRUE(scheduled.ok()) << scheduled.status();
    const auto artifact = Compile(scheduled->module(), options);
    EXPECT_TRUE(artifact.ok()) << artifact.status();
    const auto kernel = codegen::Kernel::Load(artifact->shared_object);
    return InfoOf(*kernel, "tilefarm_main_info")->threads;
  };
  EXPECT_EQ(threads(""), 1);
  EXPECT_EQ(threads(R"t(
b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.parallel(l1)
)t"),
            3);
}

TEST(Compile, ANameMustNotBeThatOfADescription) {
  auto module = *ir::ParseModule(kMatmulRelu);
  auto twin = std::make_shared<ir::PrimFunc>(*module.functions[0]);
  twin->name = "tilefarm_main_info";
  module.functions.push_back(twin);
  const absl::Status status = Compile(module, Options()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("'tilefarm_main_info'"));
}

std::string WithConstants(const char* text, const std::string& params) {
  std::string out = text;
  const size_t at = out.find("        Y = ");
  out.insert(
      at, "        T.func_attr({\"layout_free_buffers\": " + params + "})\n");
  return out;
}

// Panels of 40 columns; the last of three is shorter.
constexpr char kPackB[] = R"t(
b0 = sch.get_block("Y")
b1 = sch.cache_read(b0, 1, "global")
sch.annotate(b1, ann_key="tilefarm.prepack", ann_val=1)
sch.transform_layout(b1, buffer=("write", 0), index_map="lambda i, j: (j // 40, i, j % 40)")
)t";

absl::StatusOr<Artifact> CompilePacked() {
  TF_ASSIGN_OR_RETURN(const ir::IRModule module,
                      ir::ParseModule(WithConstants(kMatmulRelu, "[1]")));
  TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                      schedule::Trace::Parse(kPackB));
  TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled,
                      schedule::Replay(trace, module));
  return Compile(scheduled.module(), Options());
}

TEST(Compile, ConstantsArePackedAheadOfTime) {
  const auto artifact = CompilePacked();
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_THAT(artifact->symbols, testing::ElementsAre("tilefarm_main"));
  EXPECT_THAT(artifact->packed_parameters,
              testing::ElementsAre(testing::ElementsAre(1)));
  for (const char* prototype :
       {"size_t tilefarm_main_packed_bytes(int parameter);",
        "int tilefarm_main_pack(int parameter, const void* source, void* "
        "packed);",
        "int tilefarm_main_packed(const void* A_0, const void* B_1, void* "
        "C_2);",
        "1: B, 61440 bytes\n"}) {
    EXPECT_THAT(artifact->header, testing::HasSubstr(prototype));
  }
  const auto kernel = codegen::Kernel::Load(artifact->shared_object);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto bytes = reinterpret_cast<size_t (*)(int)>(
      dlsym(kernel->handle(), "tilefarm_main_packed_bytes"));
  const auto pack = reinterpret_cast<int (*)(int, const void*, void*)>(
      dlsym(kernel->handle(), "tilefarm_main_pack"));
  ASSERT_TRUE(bytes != nullptr && pack != nullptr);
  EXPECT_EQ(bytes(1), 3u * 128 * 40 * 4);
  EXPECT_EQ(bytes(0), 0u);
  EXPECT_EQ(bytes(7), 0u);
  std::vector<float> a(64 * 128), b(128 * 96), whole(64 * 96, NAN),
      packed(64 * 96, NAN), panels(3 * 128 * 40 + 1, NAN);
  Rng rng(11);
  for (float& x : a) x = static_cast<float>(rng.Uniform() * 2 - 1);
  for (float& x : b) x = static_cast<float>(rng.Uniform() * 2 - 1);
  EXPECT_NE(pack(0, a.data(), panels.data()), 0);
  EXPECT_NE(pack(-1, a.data(), panels.data()), 0);
  ASSERT_EQ(kernel->Call("tilefarm_main", a.data(), b.data(), whole.data()), 0);
  // Aligned to an element only.
  float* const odd = panels.data() + 1;
  ASSERT_EQ(pack(1, b.data(), odd), 0);
  EXPECT_EQ(odd[(128 + 5) * 40 + 7], b[5 * 96 + 47]);
  ASSERT_EQ(kernel->Call("tilefarm_main_packed", a.data(), odd, packed.data()),
            0);
  EXPECT_EQ(whole, packed);
  double sum = 0;
  for (int k = 0; k < 128; ++k) {
    sum += static_cast<double>(a[3 * 128 + k]) * b[k * 96 + 95];
  }
  EXPECT_NEAR(whole[3 * 96 + 95], std::max(sum, 0.0), 1e-4);
}

TEST(Compile, PackedArtifactsAreTheSameEveryTime) {
  const auto first = CompilePacked(), second = CompilePacked();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->shared_object, second->shared_object);
  EXPECT_EQ(first->code_digest, second->code_digest);
}

TEST(Compile, WhatTheScheduleDoesNotPackIsCopied) {
  const std::string text = WithConstants(kMatmulRelu, "[0, 1]");
  const auto artifact = CompileText(text.c_str(), Options());
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_THAT(artifact->header,
              testing::HasSubstr("1: B, 49152 bytes, a copy"));
  const auto kernel = codegen::Kernel::Load(artifact->shared_object);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto pack = reinterpret_cast<int (*)(int, const void*, void*)>(
      dlsym(kernel->handle(), "tilefarm_main_pack"));
  ASSERT_NE(pack, nullptr);
  std::vector<float> b(128 * 96), copy(128 * 96);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i);
  ASSERT_EQ(pack(1, b.data(), copy.data()), 0);
  EXPECT_EQ(b, copy);
}

// A GPU takes constants as they are, and needs nothing packed.
TEST(Compile, ConstantsOfAGpuAreAsStated) {
  const std::string text = WithConstants(kMatmulRelu, "[1]");
  CompileOptions options;
  options.target = *target::Parse("sim:sm_80");
  const auto module = ir::ParseModule(text);
  ASSERT_TRUE(module.ok()) << module.status();
  const auto trace = schedule::Trace::Parse(R"t(
b0 = sch.get_block("Y")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
l4 = sch.fuse(l2, l3)
l5, l6 = sch.split(l4, factors=[None, 64])
sch.bind(l5, "blockIdx.x")
sch.bind(l6, "threadIdx.x")
sch.compute_at(b0, l6)
)t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  const auto scheduled = schedule::Replay(*trace, *module);
  ASSERT_TRUE(scheduled.ok()) << scheduled.status();
  const auto artifact = Compile(scheduled->module(), options);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_THAT(artifact->packed_parameters,
              testing::ElementsAre(testing::IsEmpty()));
  EXPECT_THAT(artifact->header, testing::Not(testing::HasSubstr("_packed")));
  const auto kernel = codegen::Kernel::Load(artifact->shared_object);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> a(64 * 128, 1), b(128 * 96, 2), c(64 * 96, NAN);
  ASSERT_EQ(kernel->Call("tilefarm_main", a.data(), b.data(), c.data()), 0);
  EXPECT_EQ(c, std::vector<float>(64 * 96, 256));
}

TEST(Compile, DerivedSymbolsAreNobodyElses) {
  auto module = *ir::ParseModule(WithConstants(kMatmulRelu, "[1]"));
  auto twin = std::make_shared<ir::PrimFunc>(*module.functions[0]);
  twin->name = "tilefarm_main_pack";
  twin->attrs.clear();
  module.functions.push_back(twin);
  const auto artifact = Compile(module, Options());
  EXPECT_EQ(artifact.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(artifact.status().message()),
              testing::HasSubstr("two functions have the symbol "
                                 "'tilefarm_main_pack'"));
}

TEST(Compile, FingerprintNamesLlvmAndEpoch) {
  EXPECT_THAT(Fingerprint(), testing::MatchesRegex("llvm-[0-9.]+\\+tf[0-9]+"));
}

}  // namespace
}  // namespace tilefarm::driver

// Packing ahead of time changes no result: for random candidates of workloads
// with constant parameters
//   interpreter(program) = interpreter(scheduled) = interpreter(pack, packed)
//                        = compiled SYMBOL = compiled SYMBOL_pack, _packed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>

#include "base/rng.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/annotations.h"
#include "compiler/lower/split_prepack.h"
#include "compiler/space/design_space.h"
#include "tests/codegen/kernel.h"
#include "tests/space/space_test_programs.h"
#include "tests/support/candidate_text.h"

namespace tilefarm::property {
namespace {

using Floats = std::vector<float>;
using te::Tensor;

constexpr int kCandidates = 24;

Tensor Input(const char* name, std::vector<int64_t> shape) {
  return te::Placeholder(name, std::move(shape), ir::DataType::Float(32));
}

struct Workload {
  const char* name;
  std::function<ir::PrimFuncPtr()> make;
};

std::vector<Workload> Workloads() {
  using space::WithConstants;
  return {
      {"matmul_relu",
       [] { return WithConstants(space::MatmulRelu(12, 40, 16), {1}); }},
      {"tails", [] { return WithConstants(space::Matmul(7, 61, 13), {1}); }},
      {"both",
       [] {
         return WithConstants(space::Matmul(19, 48, 8), {0, 1});
       }},
      {"dense", [] { return WithConstants(space::Dense(1, 50, 64), {1}); }},
      {"conv", [] { return WithConstants(space::PaddedConv(), {1}); }},
      {"conv_nchw",
       [] {
         const Tensor data = Input("data", {1, 4, 8, 8});
         const Tensor weight = Input("weight", {12, 4, 3, 3});
         return WithConstants(
             space::Build({data, weight, te::Conv2dNchw(data, weight)}), {1});
       }},
      // Winograd's algorithm is among its candidates, also with tiles beyond
      // the border.
      {"winograd",
       [] {
         const Tensor data = Input("data", {1, 9, 11, 16});
         const Tensor weight = Input("weight", {3, 3, 16, 32});
         const Tensor bias = Input("bias", {32});
         te::ConvOptions options;
         options.padding = {1, 1};
         return WithConstants(
             space::Build({data, weight, bias,
                           te::Relu(te::Add(
                               te::Conv2dNhwc(data, weight, options), bias))}),
             {1, 2});
       }},
      {"odd_conv_bias",
       [] {
         const Tensor data = Input("data", {1, 7, 9, 5});
         const Tensor weight = Input("weight", {3, 3, 5, 37});
         const Tensor bias = Input("bias", {37});
         return WithConstants(
             space::Build(
                 {data, weight, bias,
                  te::Relu(te::Add(te::Conv2dNhwc(data, weight, {}), bias))}),
             {1, 2});
       }},
  };
}

std::vector<Floats> RandomBuffers(const ir::PrimFunc& program, uint64_t seed) {
  Rng rng(seed);
  std::vector<Floats> buffers;
  for (const ir::Buffer& param : program.params) {
    Floats& values = buffers.emplace_back(param->num_elements());
    for (float& v : values) v = static_cast<float>(rng.Uniform() * 2 - 1);
  }
  return buffers;
}

absl::Status Interpret(const ir::PrimFunc& function,
                       const std::vector<Floats*>& buffers) {
  std::vector<std::span<std::byte>> spans;
  for (Floats* values : buffers) {
    spans.push_back(std::as_writable_bytes(std::span(*values)));
  }
  return ir::Interpret(function, spans);
}

std::vector<Floats*> Pointers(std::vector<Floats>& buffers) {
  std::vector<Floats*> pointers;
  for (Floats& values : buffers) pointers.push_back(&values);
  return pointers;
}

void ExpectNear(const Floats& got, const Floats& want, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 1e-4) << what << ", element " << i;
  }
}

int Call(void* function, std::vector<void*> p) {
  p.resize(4);
  return reinterpret_cast<int (*)(void*, void*, void*, void*)>(function)(
      p[0], p[1], p[2], p[3]);
}

void CheckInterpreted(const ir::PrimFunc& scheduled, std::vector<Floats> in,
                      const Floats& want) {
  const auto split = lower::SplitPrepack(scheduled);
  ASSERT_TRUE(split.ok()) << split.status();
  std::vector<Floats> packed(in.size());
  std::vector<Floats*> args = Pointers(in);
  for (const lower::PackedParam& param : split->params) {
    const auto at = static_cast<size_t>(param.param);
    if (param.pack == nullptr) continue;
    const ir::Buffer& buffer = split->packed->params[at];
    ASSERT_GE(param.bytes, buffer->num_elements() * 4);
    // Padding must never be read.
    packed[at].assign(buffer->num_elements(), NAN);
    ASSERT_TRUE(Interpret(*param.pack, {&in[at], &packed[at]}).ok());
    args[at] = &packed[at];
  }
  const absl::Status status = Interpret(*split->packed, args);
  ASSERT_TRUE(status.ok()) << status;
  ExpectNear(in.back(), want, "packed, interpreted");
}

void CheckCompiled(const ir::PrimFuncPtr& scheduled,
                   const target::Target& target, std::vector<Floats> in,
                   const Floats& want) {
  driver::CompileOptions options;
  options.target = target;
  const auto artifact = driver::Compile(ir::IRModule{{scheduled}}, options);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  const auto kernel = codegen::Kernel::Load(artifact->shared_object);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const std::string symbol = artifact->symbols[0];
  const auto find = [&](const char* suffix) {
    return dlsym(kernel->handle(), (symbol + suffix).c_str());
  };
  std::vector<void*> args;
  for (Floats& values : in) args.push_back(values.data());
  ASSERT_EQ(Call(find(""), args), 0);
  ExpectNear(in.back(), want, "whole, compiled");
  in.back().assign(in.back().size(), NAN);
  std::vector<Floats> packed(in.size());
  for (const int param : artifact->packed_parameters[0]) {
    const auto at = static_cast<size_t>(param);
    const auto bytes =
        reinterpret_cast<size_t (*)(int)>(find("_packed_bytes"))(param);
    ASSERT_GE(bytes, in[at].size() * 4);
    packed[at].assign(bytes / 4, NAN);
    ASSERT_EQ((reinterpret_cast<int (*)(int, const void*, void*)>(
                  find("_pack"))(param, in[at].data(), packed[at].data())),
              0);
    args[at] = packed[at].data();
  }
  ASSERT_EQ(Call(find("_packed"), args), 0);
  ExpectNear(in.back(), want, "packed, compiled");
}

class PrepackPropertyTest : public testing::TestWithParam<size_t> {};

TEST_P(PrepackPropertyTest, BothEntryPointsComputeTheProgram) {
  const Workload workload = Workloads()[GetParam()];
  const auto target = target::Parse("host,cores=1");
  ASSERT_TRUE(target.ok()) << target.status();
  const ir::PrimFuncPtr program = workload.make();
  const auto space = space::DesignSpace::Create(program, *target);
  ASSERT_TRUE(space.ok()) << space.status();
  const uint64_t seed = 400 + GetParam();
  std::vector<Floats> in = RandomBuffers(*program, seed);
  const std::vector<Floats> inputs = in;
  ASSERT_TRUE(Interpret(*program, Pointers(in)).ok());
  const Floats want = in.back();
  Rng rng(seed);
  int packed = 0;
  for (int i = 0; i < kCandidates; ++i) {
    const auto candidate = (*space)->Sample(rng);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    const auto schedule = (*space)->Apply(*candidate);
    if (!schedule.ok()) continue;
    const ir::PrimFuncPtr scheduled = schedule->module().Find(program->name);
    const std::string text = ir::Print(*scheduled);
    SCOPED_TRACE(testing::Message()
                 << workload.name << ", seed " << seed << ", candidate " << i
                 << ": " << space::CandidateText(*candidate) << "\n"
                 << text);
    packed += text.find(ir::kPrepack) != std::string::npos;
    std::vector<Floats> buffers = inputs;
    ASSERT_TRUE(Interpret(*scheduled, Pointers(buffers)).ok());
    ExpectNear(buffers.back(), want, "scheduled, interpreted");
    CheckInterpreted(*scheduled, inputs, want);
    CheckCompiled(scheduled, *target, inputs, want);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(packed, kCandidates / 4);
}

INSTANTIATE_TEST_SUITE_P(Workloads, PrepackPropertyTest,
                         testing::Range<size_t>(0, Workloads().size()),
                         [](const auto& info) {
                           return std::string(Workloads()[info.param].name);
                         });

}  // namespace
}  // namespace tilefarm::property

// Small kernels of PTX and their execution, for tests of ptx/ptx_machine.h.
#ifndef TILEFARM_TESTS_GPU_PTX_TEST_SUPPORT_H_
#define TILEFARM_TESTS_GPU_PTX_TEST_SUPPORT_H_

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/gpu/ptx/ptx_machine.h"

namespace tilefarm::ptx {

// One allocation.
class Buffer : public Memory {
 public:
  explicit Buffer(std::vector<float> values) : values(std::move(values)) {}
  std::pair<uintptr_t, uintptr_t> Find(uintptr_t address) const override {
    const auto begin = reinterpret_cast<uintptr_t>(values.data());
    const auto end = begin + values.size() * sizeof(float);
    if (address < begin || address >= end) return {0, 0};
    return {begin, end};
  }
  std::vector<float> values;
};

// `directives` stand after the parameters.
inline std::string KernelText(const std::string& body,
                              const std::string& directives = "") {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n"
         ".extern .shared .align 1024 .b8 s[];\n"
         ".visible .entry k(\n\t.param .u64 p\n)\n" +
         directives +
         "{\n"
         "\t.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
         "\t.reg .f32 %f<8>; .reg .b16 %rs<4>;\n"
         "\tld.param.u64 %rd1, [p];\n"
         "\tmov.u32 %r1, %tid.x;\n"
         "\tmul.wide.u32 %rd2, %r1, 4;\n"
         "\tadd.s64 %rd3, %rd1, %rd2;\n"  // this thread's element
         "\tmov.u32 %r2, s;\n"
         "\tshl.b32 %r3, %r1, 2;\n"
         "\tadd.s32 %r4, %r2, %r3;\n" +  // and its place in shared memory
         body +
         "\tret;\n}\n";
}

// `counted`: JSON of Counters; null: nothing is counted.
inline Outcome ExecuteText(const std::string& text, Buffer& buffer,
                           Launch launch, std::string* counted = nullptr) {
  std::string error;
  const auto module = Module::Parse(text, &error);
  if (module == nullptr) {
    ADD_FAILURE() << error;
    return {};
  }
  auto pointer = reinterpret_cast<uint64_t>(buffer.values.data());
  void* arguments[] = {&pointer};
  launch.shared_bytes = 4096;
  launch.arguments = arguments;
  const Kernel& kernel = *module->Find("k");
  Counters counters(kernel);
  if (counted != nullptr) launch.counters = &counters;
  const Outcome outcome = Run(kernel, launch, buffer);
  if (counted != nullptr) *counted = counters.Json();
  return outcome;
}

inline Outcome Execute(const std::string& body, Buffer& buffer,
                       unsigned threads, uint64_t seed = 1,
                       std::string* counted = nullptr) {
  Launch launch;
  launch.threads = {threads, 1, 1};
  launch.seed = seed;
  return ExecuteText(KernelText(body), buffer, launch, counted);
}

inline std::vector<float> Iota(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

}  // namespace tilefarm::ptx

#endif  // TILEFARM_TESTS_GPU_PTX_TEST_SUPPORT_H_

// No legal sequence of primitives changes what a program computes:
// interpreter(program) == interpreter(scheduled) == compiled(scheduled), over
// random programs and random legal traces. A failure prints the seed of its
// pair, which alone reproduces it:
//   TILEFARM_PROPERTY_SEED=N schedule_property_test
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/rng.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "tests/property/random_program.h"
#include "tests/property/random_trace.h"
#include "tests/support/close_to.h"

namespace tilefarm::property {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int kPairs = 2400;
constexpr int kBatch = 24;  // functions compiled together
constexpr absl::Duration kBudget = absl::Minutes(6);

std::vector<Bytes> RandomBuffers(const ir::PrimFunc& program, uint64_t seed) {
  Rng rng(seed);
  std::vector<Bytes> buffers;
  for (const ir::Buffer& param : program.params) {
    const int64_t n = param->num_elements();
    Bytes bytes(n * param->dtype.bytes());
    for (int64_t i = 0; i < n; ++i) {
      std::byte* at = bytes.data() + i * param->dtype.bytes();
      const double u = rng.Uniform() * 2 - 1;
      if (param->dtype == ir::DataType::Float(32)) {
        const float v = static_cast<float>(u);
        std::memcpy(at, &v, sizeof v);
      } else if (param->dtype == ir::DataType::Float(64)) {
        std::memcpy(at, &u, sizeof u);
      } else {
        const int64_t v = static_cast<int64_t>(u * 20);
        std::memcpy(at, &v, param->dtype.bytes());
      }
    }
    buffers.push_back(std::move(bytes));
  }
  return buffers;
}

absl::Status Interpret(const ir::PrimFunc& program,
                       std::vector<Bytes>& buffers) {
  std::vector<std::span<std::byte>> spans(buffers.begin(), buffers.end());
  return ir::Interpret(program, spans);
}

// Empty if they agree: integers bit for bit, floats within the difference that
// another order of a short sum may cause.
std::string Difference(const ir::PrimFunc& program,
                       const std::vector<Bytes>& want,
                       const std::vector<Bytes>& got) {
  for (size_t p = 0; p < want.size(); ++p) {
    const ir::DataType type = program.params[p]->dtype;
    const int64_t n = program.params[p]->num_elements();
    for (int64_t i = 0; i < n; ++i) {
      const std::byte* a = want[p].data() + i * type.bytes();
      const std::byte* b = got[p].data() + i * type.bytes();
      if (std::memcmp(a, b, type.bytes()) == 0) continue;
      double x = 0, y = 0;
      if (type == ir::DataType::Float(32)) {
        float u, v;
        std::memcpy(&u, a, sizeof u);
        std::memcpy(&v, b, sizeof v);
        x = u;
        y = v;
      } else if (type == ir::DataType::Float(64)) {
        std::memcpy(&x, a, sizeof x);
        std::memcpy(&y, b, sizeof y);
      } else {
        return absl::StrCat("integer ", program.params[p]->name, "[", i,
                            "] differs");
      }
      if (!CloseTo(y, x, 1e-4, 1e-4)) {
        return absl::StrCat(program.params[p]->name, "[", i, "] is ", y,
                            " instead of ", x);
      }
    }
  }
  return "";
}

struct Case {
  uint64_t seed;
  ir::PrimFuncPtr program, scheduled;
  std::string trace;
  std::vector<Bytes> want;

  std::string Describe() const {
    return absl::StrCat("TILEFARM_PROPERTY_SEED=", seed, "\n",
                        ir::Print(*program), "\n", trace, "\n",
                        ir::Print(*scheduled));
  }
};

// Makes one pair and compares it in the interpreter.
std::optional<Case> MakeCase(uint64_t seed, PrimitiveCounts* counts) {
  Rng rng(seed);
  Case c;
  c.seed = seed;
  c.program = RandomProgram(rng);
  c.want = RandomBuffers(*c.program, seed);
  if (const absl::Status status = Interpret(*c.program, c.want); !status.ok()) {
    ADD_FAILURE() << "seed " << seed << ": " << status << "\n"
                  << ir::Print(*c.program);
    return std::nullopt;
  }
  const schedule::Schedule schedule = RandomSchedule(
      c.program, static_cast<int>(rng.Between(2, 14)), rng, counts);
  c.scheduled = schedule.module().Find("main");
  c.trace = schedule.trace().Print();

  EXPECT_TRUE(ir::Verify(*c.scheduled).ok()) << ir::Verify(*c.scheduled) << "\n"
                                             << c.Describe();
  std::vector<Bytes> got = RandomBuffers(*c.program, seed);
  const absl::Status status = Interpret(*c.scheduled, got);
  EXPECT_TRUE(status.ok()) << status << "\n" << c.Describe();
  const std::string difference = Difference(*c.program, c.want, got);
  EXPECT_EQ(difference, "") << "scheduled program\n" << c.Describe();

  // The trace by itself gives the same program, byte for byte.
  auto trace = schedule::Trace::Parse(c.trace);
  EXPECT_TRUE(trace.ok()) << trace.status() << "\n" << c.trace;
  if (trace.ok()) {
    ir::IRModule module;
    module.functions.push_back(c.program);
    auto replayed = schedule::Replay(*trace, module);
    EXPECT_TRUE(replayed.ok()) << replayed.status() << "\n" << c.Describe();
    if (replayed.ok()) {
      EXPECT_EQ(ir::Print(*replayed->module().Find("main")),
                ir::Print(*c.scheduled))
          << c.Describe();
      EXPECT_EQ(replayed->trace().Print(), c.trace);
    }
  }
  if (testing::Test::HasFailure()) return std::nullopt;
  return c;
}

void RunCompiled(const std::vector<Case>& cases) {
  ir::IRModule module;
  for (size_t i = 0; i < cases.size(); ++i) {
    ir::PrimFunc function = *cases[i].scheduled;
    function.name = absl::StrCat("f", i);
    function.attrs["global_symbol"] = ir::Attr(function.name);
    module.functions.push_back(
        std::make_shared<const ir::PrimFunc>(std::move(function)));
  }
  driver::CompileOptions options;
  auto target = target::Parse("host");
  ASSERT_TRUE(target.ok()) << target.status();
  options.target = *target;
  auto artifact = driver::Compile(module, options);
  ASSERT_TRUE(artifact.ok())
      << artifact.status() << "\nseeds " << cases.front().seed << " to "
      << cases.back().seed
      << (cases.size() == 1 ? cases.front().Describe() : "");
  char path[] = "/tmp/tilefarm-property-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(
      write(fd, artifact->shared_object.data(), artifact->shared_object.size()),
      static_cast<ssize_t>(artifact->shared_object.size()));
  close(fd);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  ASSERT_NE(library, nullptr) << dlerror();
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    void* symbol = dlsym(library, absl::StrCat("f", i).c_str());
    ASSERT_NE(symbol, nullptr);
    std::vector<Bytes> got = RandomBuffers(*c.program, c.seed);
    std::vector<void*> p;
    for (Bytes& bytes : got) p.push_back(bytes.data());
    int result = -1;
    switch (p.size()) {
      case 2:
        result = reinterpret_cast<int (*)(void*, void*)>(symbol)(p[0], p[1]);
        break;
      case 3:
        result = reinterpret_cast<int (*)(void*, void*, void*)>(symbol)(
            p[0], p[1], p[2]);
        break;
      case 4:
        result = reinterpret_cast<int (*)(void*, void*, void*, void*)>(symbol)(
            p[0], p[1], p[2], p[3]);
        break;
      default:
        FAIL() << p.size() << " parameters";
    }
    EXPECT_EQ(result, 0) << c.Describe();
    EXPECT_EQ(Difference(*c.program, c.want, got), "") << "compiled program\n"
                                                       << c.Describe();
    if (testing::Test::HasFailure()) break;
  }
  dlclose(library);
}

TEST(SchedulePropertyTest, LegalTracesKeepWhatProgramsCompute) {
  PrimitiveCounts counts;
  if (const char* seed = std::getenv("TILEFARM_PROPERTY_SEED")) {
    std::optional<Case> c = MakeCase(std::strtoull(seed, nullptr, 10), &counts);
    if (c) {
      std::cout << c->Describe();
      RunCompiled({*c});
    }
    return;
  }
  int pairs = kPairs;
  if (const char* text = std::getenv("TILEFARM_PROPERTY_PAIRS")) {
    pairs = std::atoi(text);
  }
  const absl::Duration start = Clock::Real().Monotonic();
  int done = 0;
  constexpr uint64_t kFirstSeed = 1000;
  while (done < pairs && Clock::Real().Monotonic() - start < kBudget) {
    std::vector<Case> batch;
    for (int i = 0; i < kBatch && done < pairs; ++i, ++done) {
      std::optional<Case> c = MakeCase(kFirstSeed + done, &counts);
      if (HasFailure()) return;
      // Thread bindings are for GPUs: only the interpreter runs those.
      if (c && c->trace.find("sch.bind(") == std::string::npos) {
        batch.push_back(*std::move(c));
      }
    }
    if (!batch.empty()) RunCompiled(batch);
    if (HasFailure()) return;
  }
  std::cout << done << " pairs, seeds from " << kFirstSeed << "\n";
  for (const auto& [name, tried] : counts.tried) {
    std::cout << "  " << name << ": " << counts.accepted[name] << " of "
              << tried << " accepted\n";
    // Random loops do not match an intrinsic; tensorize_test has matching ones.
    if (name == "tensorize") continue;
    EXPECT_GT(counts.accepted[name], 0)
        << name << " was never legal: the test does not reach it";
  }
  EXPECT_GE(done, std::min(pairs, 2000)) << "the time budget was too short";
}

}  // namespace
}  // namespace tilefarm::property

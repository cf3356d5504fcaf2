// Code for other architectures computes the same as the interpreter: random
// candidates of each target's own design space, built here and run by qemu.
// Inputs are small whole numbers, so that sums are exact in any order.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/target/target.h"
#include "tests/support/candidate_cases.h"
#include "tests/support/close_to.h"
#include "tests/support/process.h"

namespace tilefarm::testing {
namespace {

constexpr uint64_t kSeed = 20261122;
constexpr int kCandidates = 5;

struct Machine {
  const char* target;
  const char* runner;  // program that runs its artifacts
  std::vector<std::string> emulator;
};

const std::vector<Machine>& Machines() {
  static const auto& machines = *new std::vector<Machine>{
      {"aarch64:cortex-a72,cores=1",
       TILEFARM_RUN_ARTIFACT_AARCH64,
       {"/usr/bin/env", "qemu-aarch64-static", "-cpu", "cortex-a72", "-L",
        "/usr/aarch64-linux-gnu"}},
      // Dot products, including mixed signs, and threads.
      {"aarch64:cortex-a76,cores=2,+i8mm",
       TILEFARM_RUN_ARTIFACT_AARCH64,
       {"/usr/bin/env", "qemu-aarch64-static", "-cpu", "max", "-L",
        "/usr/aarch64-linux-gnu"}},
      {"armv7:cortex-a7,cores=1",
       TILEFARM_RUN_ARTIFACT_ARMV7,
       {"/usr/bin/env", "qemu-arm-static", "-cpu", "cortex-a7", "-L",
        "/usr/arm-linux-gnueabihf"}},
      // No division and no fused multiply-add instructions; threads.
      {"armv7:cortex-a9,cores=2",
       TILEFARM_RUN_ARTIFACT_ARMV7,
       {"/usr/bin/env", "qemu-arm-static", "-cpu", "cortex-a9", "-L",
        "/usr/arm-linux-gnueabihf"}},
      {"riscv64,cores=1",
       TILEFARM_RUN_ARTIFACT_RISCV64,
       {"/usr/bin/env", "qemu-riscv64-static", "-L", "/usr/riscv64-linux-gnu"}},
      {"riscv64,cores=2,+v",
       TILEFARM_RUN_ARTIFACT_RISCV64,
       {"/usr/bin/env", "qemu-riscv64-static", "-cpu",
        "rv64,v=true,vlen=128,vext_spec=v1.0", "-L",
        "/usr/riscv64-linux-gnu"}}};
  return machines;
}

constexpr char kProduct[] = R"(
@T.prim_func
def main(A: T.Buffer((37, 24), "float32"), B: T.Buffer((24, 40), "float32"), D: T.Buffer((37, 40), "float32")):
    C = T.alloc_buffer((37, 40), "float32")
    for i, j, k in T.grid(37, 40, 24):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(37, 40):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))
)";

constexpr char kConvolution[] = R"(
@T.prim_func
def main(A: T.Buffer((1, 9, 9, 8), "float32"), W: T.Buffer((3, 3, 8, 16), "float32"), C: T.Buffer((1, 9, 9, 16), "float32")):
    T.func_attr({"layout_free_buffers": [1]})
    P = T.alloc_buffer((1, 11, 11, 8), "float32")
    for n, h, w, c in T.grid(1, 11, 11, 8):
        with T.block("P"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            P[vn, vh, vw, vc] = T.if_then_else(1 <= vh and vh < 10 and 1 <= vw and vw < 10, A[vn, vh - 1, vw - 1, vc], T.float32(0))
    for n, h, w, o, rh, rw, rc in T.grid(1, 9, 9, 16, 3, 3, 8):
        with T.block("C"):
            vn, vh, vw, vo, vrh, vrw, vrc = T.axis.remap("SSSSRRR", [n, h, w, o, rh, rw, rc])
            with T.init():
                C[vn, vh, vw, vo] = T.float32(0)
            C[vn, vh, vw, vo] = C[vn, vh, vw, vo] + P[vn, vh + vrh, vw + vrw, vrc] * W[vrh, vrw, vrc, vo]
)";

std::string NarrowProduct(const std::string& a, const std::string& b,
                          const std::string& sum) {
  return R"(
@T.prim_func
def main(A: T.Buffer((18, 32), ")" +
         a + R"("), B: T.Buffer((32, 48), ")" + b +
         R"("), C: T.Buffer((18, 48), ")" + sum + R"(")):
    for i, j, k in T.grid(18, 48, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.cast(0, ")" +
         sum + R"(")
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], ")" +
         sum + R"(") * T.cast(B[vk, vj], ")" + sum + R"(")
)";
}

// Divisions and conversions for which ARMv7 has no instructions.
constexpr char kLong[] = R"(
@T.prim_func
def main(A: T.Buffer((257,), "int64"), B: T.Buffer((257,), "int64"), C: T.Buffer((257,), "int64"), D: T.Buffer((257,), "float32")):
    for i in range(257):
        with T.block("C"):
            vi = T.axis.spatial(257, i)
            C[vi] = A[vi] // (B[vi] % T.int64(1000) - T.int64(1001)) + T.truncmod(A[vi], B[vi])
    for i in range(257):
        with T.block("D"):
            vi = T.axis.spatial(257, i)
            D[vi] = T.cast(A[vi], "float32") + T.cast(T.cast(T.cast(B[vi], "float64") * T.float64(0.37), "int64"), "float32")
)";

constexpr char kElementary[] = R"(
@T.prim_func
def main(A: T.Buffer((5, 33), "float32"), B: T.Buffer((5, 33), "float32")):
    for i, j in T.grid(5, 33):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.exp(A[vi, vj] * T.float32(0.25)) + T.tanh(A[vi, vj]) + T.erf(A[vi, vj]) + T.sqrt(T.max(A[vi, vj], T.float32(0)))
)";

class CrossProperty : public ::testing::TestWithParam<size_t> {
 protected:
  const Machine& machine() const { return Machines()[GetParam()]; }

  void SetUp() override {
    const std::string program = machine().runner;
    if (program.empty() || access(program.c_str(), X_OK) != 0) {
      GTEST_SKIP() << "no cross compiler for " << machine().target
                   << " was found when this was configured";
    }
    if (RunCommand({machine().emulator[0], machine().emulator[1], "--version"})
            .exit_code != 0) {
      GTEST_SKIP() << "no " << machine().emulator[1] << " is installed";
    }
    std::cout << "seed " << kSeed << "\n";
  }

  // Calls the artifact on `buffers`, in place.
  absl::Status Run(const driver::Artifact& artifact, Buffers& buffers) {
    const std::string library = dir_.Write("kernel.so", artifact.shared_object);
    std::string all;
    for (const auto& buffer : buffers) {
      all.append(reinterpret_cast<const char*>(buffer.data()), buffer.size());
    }
    const std::string file = dir_.Write("buffers", all);
    std::vector<std::string> command = machine().emulator;
    command.insert(command.end(),
                   {machine().runner, library, artifact.symbols.at(0), file});
    for (const auto& buffer : buffers) {
      command.push_back(std::to_string(buffer.size()));
    }
    const CommandResult result = RunCommand(command);
    if (result.exit_code != 0) return absl::InternalError(result.errors);
    std::ifstream in(file, std::ios::binary);
    for (auto& buffer : buffers) {
      in.read(reinterpret_cast<char*>(buffer.data()),
              static_cast<std::streamsize>(buffer.size()));
    }
    return in.good() ? absl::OkStatus()
                     : absl::DataLossError("the buffers did not come back");
  }

  // `tolerance` 0: bit for bit; otherwise relative to float32 values.
  void ExpectAgreement(const std::string& text, double tolerance = 0) {
    Rng rng(kSeed);
    const auto made = MakeCandidateCase(text, rng);
    ASSERT_TRUE(made.ok()) << made.status() << text;
    const Buffers& expected = made->expected;
    driver::CompileOptions options;
    options.target = *target::Parse(machine().target);
    const auto check =
        [&](const schedule::Schedule& scheduled) -> absl::Status {
      TF_ASSIGN_OR_RETURN(const driver::Artifact artifact,
                          driver::Compile(scheduled.module(), options));
      Buffers actual = made->inputs;
      TF_RETURN_IF_ERROR(Run(artifact, actual));
      if (tolerance == 0) {
        EXPECT_TRUE(actual == expected) << scheduled.trace().Print() << text;
        return absl::OkStatus();
      }
      for (size_t at = 0; at < expected.back().size(); at += 4) {
        float want, got;
        std::memcpy(&want, &expected.back()[at], 4);
        std::memcpy(&got, &actual.back()[at], 4);
        EXPECT_TRUE(CloseTo(got, want, tolerance, tolerance))
            << got << " instead of " << want << " at " << at;
      }
      return absl::OkStatus();
    };
    const auto ran = ForEachCandidate(made->function, machine().target,
                                      kCandidates, rng, check);
    ASSERT_TRUE(ran.ok()) << ran.status() << text;
    EXPECT_GT(*ran, 0);
  }

 private:
  TempDir dir_;
};

TEST_P(CrossProperty, ProductsAgree) { ExpectAgreement(kProduct); }

TEST_P(CrossProperty, ConvolutionsWithConstantsAheadOfTimeAgree) {
  ExpectAgreement(kConvolution);
}

TEST_P(CrossProperty, NarrowProductsAgree) {
  ExpectAgreement(NarrowProduct("int8", "int8", "int32"));
  ExpectAgreement(NarrowProduct("uint8", "uint8", "int32"));
  ExpectAgreement(NarrowProduct("uint8", "int8", "int32"));
  ExpectAgreement(NarrowProduct("int16", "int16", "int32"));
  ExpectAgreement(NarrowProduct("bfloat16", "bfloat16", "float32"));
  ExpectAgreement(NarrowProduct("float16", "float16", "float32"));
}

TEST_P(CrossProperty, LongIntegersAgree) { ExpectAgreement(kLong); }

TEST_P(CrossProperty, ElementaryFunctionsAgree) {
  ExpectAgreement(kElementary, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Machines, CrossProperty,
                         ::testing::Range(size_t{0}, Machines().size()),
                         [](const auto& info) {
                           std::string name = Machines()[info.param].target;
                           for (char& c : name) {
                             if (!isalnum(static_cast<unsigned char>(c))) {
                               c = '_';
                             }
                           }
                           return name;
                         });

}  // namespace
}  // namespace tilefarm::testing

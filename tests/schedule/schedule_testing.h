// Programs as text for the tests of primitives, and matchers for results.
#ifndef TILEFARM_TESTS_SCHEDULE_SCHEDULE_TESTING_H_
#define TILEFARM_TESTS_SCHEDULE_SCHEDULE_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/schedule/schedule.h"

namespace tilefarm::schedule {

// Aborts with the parser's message if the text is not a program.
inline ir::IRModule ModuleOf(const std::string& text) {
  auto module = ir::ParseModule(text);
  if (!module.ok()) {
    std::cerr << module.status().message() << "\n";
    std::abort();
  }
  return *module;
}

// C[i, j] += A[i, k] * B[k, j], 16 x 16 x 16.
inline const char kMatmul[] = R"(
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

// One block of 30 elements in two loops.
inline const char kBlockInTwoLoops[] = R"(
@T.prim_func
def main(A: T.Buffer((30,), "float32")):
    for i, j in T.grid(5, 6):
        with T.block("A"):
            v = T.axis.spatial(30, i * 6 + j)
            A[v] = T.float32(1)
)";

// Each iteration of the first loop has its own copy of P. If D reads P itself,
// there is only one P, which all iterations write.
inline const char kCopyOfEachIteration[] = R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), D: T.Buffer((4,), "float32")):
    P = T.alloc_buffer((4,), "float32")
    B = T.alloc_buffer((4,), "float32")
    for i in range(4):
        for ax0 in range(4):
            with T.block("P"):
                v0 = T.axis.spatial(4, ax0)
                P[v0] = A[v0] * T.float32(2)
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = P[vi]
    for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = B[vi] + T.float32(1)
)";

// B = A + 1, C = B * 2, over 30 elements.
inline const char kChain[] = R"(
@T.prim_func
def main(A: T.Buffer((30,), "float32"), C: T.Buffer((30,), "float32")):
    B = T.alloc_buffer((30,), "float32")
    for i in range(30):
        with T.block("B"):
            v = T.axis.spatial(30, i)
            B[v] = A[v] + T.float32(1)
    for i in range(30):
        with T.block("C"):
            v = T.axis.spatial(30, i)
            C[v] = B[v] * T.float32(2)
)";

// The lines from the first loop to the last binding or predicate of the first
// block: the part that loop primitives change.
inline std::string Nest(const Schedule& schedule) {
  const std::string text = ir::Print(*schedule.module().functions[0]);
  std::string out;
  size_t start = 0;
  bool inside = false;
  size_t indent = 0;
  while (start < text.size()) {
    const size_t end = text.find('\n', start);
    const std::string line = text.substr(start, end - start);
    start = end + 1;
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    if (!inside && line.compare(first, 4, "for ") == 0) {
      inside = true;
      indent = first;
    }
    if (!inside) continue;
    if (line.find("T.reads") != std::string::npos) break;
    out += line.substr(indent) + "\n";
  }
  return out;
}

// The value of a StatusOr, or a test failure with its message.
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_IMPL_(TEST_OR_CAT_(test_or_, __LINE__), lhs, expr)
#define TEST_OR_CAT_(a, b) TEST_OR_CAT2_(a, b)
#define TEST_OR_CAT2_(a, b) a##b
#define ASSERT_OK_AND_ASSIGN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  ASSERT_TRUE(tmp.ok()) << tmp.status();           \
  lhs = *std::move(tmp)

inline void ExpectStatus(const absl::Status& status, absl::StatusCode code,
                         const std::string& text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(text));
}

inline void ExpectIllegal(const absl::Status& status, const std::string& text) {
  ExpectStatus(status, absl::StatusCode::kFailedPrecondition, text);
}
inline void ExpectInvalid(const absl::Status& status, const std::string& text) {
  ExpectStatus(status, absl::StatusCode::kInvalidArgument, text);
}

}  // namespace tilefarm::schedule

#endif  // TILEFARM_TESTS_SCHEDULE_SCHEDULE_TESTING_H_

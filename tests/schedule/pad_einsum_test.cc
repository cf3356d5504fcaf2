// pad_einsum: rewrites and rejections.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

constexpr char kEinsumParams[] =
    "A: T.Buffer((5, 6), \"float32\"), B: T.Buffer((6, 9), \"float32\"), "
    "C: T.Buffer((5, 9), \"float32\")";

std::string Pad(const std::string& padding) {
  return absl::StrCat(
      "b0 = sch.get_block(\"C\")\nsch.pad_einsum(b0, padding=", padding, ")\n");
}

// C[i, j] = sum over k of a term.
std::string EinsumOf(const std::string& term) {
  return Program(kEinsumParams, absl::StrCat(R"(for i, j, k in T.grid(5, 9, 6):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + )",
                                             term));
}

TEST(PadEinsum, FillsCopiesWithZeros) {
  const std::string expected =
      Program(kEinsumParams, R"(A_pad = T.alloc_buffer((5, 8))
B_pad = T.alloc_buffer((8, 16))
C_pad = T.alloc_buffer((5, 16))
for ax0, ax1 in T.grid(5, 8):
    with T.block("A_pad"):
        v0, v1 = T.axis.remap("SS", [ax0, ax1])
        A_pad[v0, v1] = T.if_then_else(v1 < 6, A[v0, v1], T.float32(0))
for ax0, ax1 in T.grid(8, 16):
    with T.block("B_pad"):
        v0, v1 = T.axis.remap("SS", [ax0, ax1])
        B_pad[v0, v1] = T.if_then_else(v0 < 6 and v1 < 9, B[v0, v1], T.float32(0))
for i, j, k in T.grid(5, 16, 8):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C_pad[vi, vj] = T.float32(0)
        C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]
for ax0, ax1 in T.grid(5, 9):
    with T.block("C_pad"):
        v0, v1 = T.axis.remap("SS", [ax0, ax1])
        C[v0, v1] = C_pad[v0, v1])");
  ExpectBecomes(EinsumOf("A[vi, vk] * B[vk, vj]"), Pad("[1, 16, 4]"), expected);
}

TEST(PadEinsum, CopiesWhatGrowsAlone) {
  const std::string expected =
      Program(kEinsumParams, R"(B_pad = T.alloc_buffer((6, 12))
C_pad = T.alloc_buffer((5, 12))
for ax0, ax1 in T.grid(6, 12):
    with T.block("B_pad"):
        v0, v1 = T.axis.remap("SS", [ax0, ax1])
        B_pad[v0, v1] = T.if_then_else(v1 < 9, B[v0, v1], T.float32(0))
for i, j, k in T.grid(5, 12, 6):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C_pad[vi, vj] = T.float32(0)
        C_pad[vi, vj] = C_pad[vi, vj] + A[vi, vk] * B_pad[vk, vj]
for ax0, ax1 in T.grid(5, 9):
    with T.block("C_pad"):
        v0, v1 = T.axis.remap("SS", [ax0, ax1])
        C[v0, v1] = C_pad[v0, v1])");
  ExpectBecomes(EinsumOf("A[vi, vk] * B[vk, vj]"), Pad("[5, 4, 3]"), expected);
  // No extent is enlarged.
  ExpectBecomes(EinsumOf("A[vi, vk] * B[vk, vj]"), Pad("[5, 9, 6]"),
                EinsumOf("A[vi, vk] * B[vk, vj]"));
}

TEST(PadEinsum, OtherPrimitivesFollow) {
  ExpectSameResults(EinsumOf("A[vi, vk] * B[vk, vj]"), Pad("[2, 16, 4]") + R"(
l0, l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l1, factors=[None, 4])
l5, l6 = sch.split(l2, factors=[None, 4])
sch.reorder(l0, l3, l5, l4, l6)
b1 = sch.get_block("B_pad")
sch.compute_at(b1, l5, preserve_unit_loops=True)
b2 = sch.get_block("C_pad")
sch.reverse_compute_at(b2, l3, preserve_unit_loops=True)
)");
  // Only enlarged variables must be plain indices.
  ExpectSameResults(EinsumOf("A[(vi + vj) % 5, vk] * B[vk, vj]"),
                    Pad("[1, 1, 4]"));
}

TEST(PadEinsum, RefusesTermsThatAreNotZeroInThePadding) {
  const char* kAdded = "(A[vi, vk] + B[vk, vj])";
  ExpectRefused(EinsumOf(kAdded), Pad("[1, 1, 4]"), kIllegal,
                {"pad_einsum", "block C", "not zero where variable vk grows"});
  // Such a term may be enlarged in a dimension that is not summed over.
  ExpectSameResults(EinsumOf(kAdded), Pad("[1, 4, 1]"));
  ExpectRefused(EinsumOf("A[vi, vk] * B[0, vj]"), Pad("[1, 1, 4]"), kIllegal,
                {"pad_einsum", "B[0, vj] is not zero"});
}

TEST(PadEinsum, RefusesVariablesThatAreNoWholeDimension) {
  ExpectRefused(EinsumOf("A[vi, 5 - vk] * B[vk, vj]"), Pad("[1, 1, 4]"),
                kIllegal, {"pad_einsum", "not a whole dimension of A"});
  ExpectRefused(EinsumOf("A[vi, vi] * B[vk, vj]"), Pad("[2, 1, 1]"), kIllegal,
                {"pad_einsum", "not a whole dimension of A"});
}

// The index of a dimension of extent 1 may be 0: padded rows would be summed
// into it.
TEST(PadEinsum, RefusesVariablesThatAreNoIndexOfTheResult) {
  const std::string program = Program(
      "A: T.Buffer((1, 6), \"float32\"), B: T.Buffer((6, 9), \"float32\"), "
      "C: T.Buffer((1, 9), \"float32\")",
      R"(for i, j, k in T.grid(1, 9, 6):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[0, vj] = T.float32(0)
        C[0, vj] = C[0, vj] + A[vi, vk] * B[vk, vj])");
  ExpectRefused(program, Pad("[4, 1, 1]"), kIllegal,
                {"pad_einsum", "vi grows, and is no index"});
  ExpectSameResults(program, Pad("[1, 4, 4]"));
}

TEST(PadEinsum, RefusesOtherBlocksAndArguments) {
  ExpectRefused(EinsumOf("A[vi, vk] * B[vk, vj]"), Pad("[1, 16]"), kInvalid,
                {"pad_einsum", "2 numbers for 3 variables"});
  ExpectRefused(EinsumOf("A[vi, vk] * B[vk, vj]"), Pad("[1, 0, 4]"), kInvalid,
                {"pad_einsum", "padding 0 is out of range"});
  ExpectRefused(EinsumOf("A[vi, vk] * B[vk, vj]"), Pad("7"), kInvalid,
                {"pad_einsum", "not a list"});
  ExpectRefused(EinsumOf("A[vi, vk] * B[vk, vj]"), Pad("[1, \"x\", 4]"),
                kInvalid, {"pad_einsum", "not a list of integers"});
  ExpectRefused(EinsumOf("A[vi, vk] * B[vk, vj]"), R"(b0 = sch.get_block("C")
l0, l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l1, factors=[3, 3])
sch.pad_einsum(b0, padding=[1, 16, 4])
)",
                kIllegal, {"pad_einsum", "its loops are not its own"});
  ExpectRefused(EinsumOf("A[vi, vk] * B[vk, vj]"), R"(b0 = sch.get_block("C")
l0, l1, l2 = sch.get_loops(b0)
sch.parallel(l0)
sch.pad_einsum(b0, padding=[1, 16, 4])
)",
                kIllegal, {"pad_einsum", "serial"});
  ExpectRefused(Program(kEinsumParams, R"(for i, j in T.grid(5, 9):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = A[vi, 0])"),
                Pad("[1, 16]"), kIllegal, {"pad_einsum", "block C"});
}

}  // namespace
}  // namespace tilefarm::testing

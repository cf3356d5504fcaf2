// Which blocks are matrix products, and the memory layout of their operands.
#include "compiler/ir/library_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/substitute.h"
#include "compiler/ir/visitor.h"
#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

using ::testing::HasSubstr;

// C += `product` over i in 8, j in 16, k in 4, b in 3.
absl::StatusOr<GemmForm> Match(const std::string& buffers,
                               const std::string& output,
                               const std::string& product,
                               const std::string& init = "T.float32(0)") {
  const std::string text = absl::Substitute(R"(
@T.prim_func
def main($0):
    for b, i, j, k in T.grid(3, 8, 16, 4):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                $1 = $2
            $1 = $1 + $3
)",
                                            buffers, output, init, product);
  const PrimFuncPtr function = ParseOrDie(text);
  const BlockNode* block = nullptr;
  PreOrder(function->body, [&](const Stmt& stmt) {
    const auto* node = As<BlockNode>(stmt);
    if (node != nullptr && node->name == "C") block = node;
    return true;
  });
  return MatchGemm(*block);
}

std::string Buffers(const char* a, const char* b, const char* c,
                    const char* dtype = "float32") {
  return absl::Substitute(
      "A: T.Buffer(($0), \"$3\"), B: T.Buffer(($1), \"$3\"), "
      "C: T.Buffer(($2), \"$3\")",
      a, b, c, dtype);
}

TEST(MatchGemm, PlainAndTransposedOperands) {
  auto form = Match(Buffers("3, 8, 4", "3, 4, 16", "3, 8, 16"), "C[vb, vi, vj]",
                    "A[vb, vi, vk] * B[vb, vk, vj]");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->m, 8);
  EXPECT_EQ(form->n, 16);
  EXPECT_EQ(form->k, 4);
  EXPECT_EQ(form->lda, 4);
  EXPECT_EQ(form->ldb, 16);
  EXPECT_EQ(form->ldc, 16);
  EXPECT_FALSE(form->transpose_a);
  EXPECT_FALSE(form->transpose_b);
  EXPECT_EQ(form->batch, 3);
  EXPECT_EQ(form->batch_a, 32);
  EXPECT_EQ(form->batch_b, 64);
  EXPECT_EQ(form->batch_c, 128);

  form = Match(Buffers("3, 4, 8", "3, 16, 4", "3, 8, 16"), "C[vb, vi, vj]",
               "B[vb, vj, vk] * A[vb, vk, vi]");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_TRUE(form->transpose_a);
  EXPECT_TRUE(form->transpose_b);
  EXPECT_EQ(form->lda, 8);
  EXPECT_EQ(form->ldb, 4);
}

TEST(MatchGemm, ATransposedOutputIsTheTransposedProduct) {
  const auto form = Match(Buffers("3, 8, 4", "3, 4, 16", "3, 16, 8"),
                          "C[vb, vj, vi]", "A[vb, vi, vk] * B[vb, vk, vj]");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->m, 16);
  EXPECT_EQ(form->n, 8);
  EXPECT_TRUE(form->transpose_a);
  EXPECT_TRUE(form->transpose_b);
  EXPECT_EQ(As<LoadNode>(form->a)->buffer->name, "B");
}

TEST(MatchGemm, DimensionsThatFollowEachOtherAreOne) {
  // A convolution with one tap: the rows are positions, which only A has.
  const auto form = Match(Buffers("3, 8, 4", "4, 16", "3, 8, 16"),
                          "C[vb, vi, vj]", "A[vb, vi, vk] * B[vk, vj]");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->m, 24);
  EXPECT_EQ(form->batch, 1);
}

TEST(MatchGemm, AMatrixByAVectorHasOneColumn) {
  const auto form = Match(Buffers("3, 8, 16, 4", "4", "3, 8, 16"),
                          "C[vb, vi, vj]", "A[vb, vi, vj, vk] * B[vk]");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->m * form->n, 3 * 8 * 16);
  EXPECT_EQ(std::min(form->m, form->n), 1);
}

TEST(MatchGemm, PartsOfOtherBuffersCount) {
  const auto form = Match(Buffers("3, 8, 5, 4", "3, 4, 16", "3, 8, 16"),
                          "C[vb, vi, vj]", "A[vb, vi, 2, vk] * B[vb, vk, vj]");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->lda, 20);
  EXPECT_EQ(ToString(form->a), "A[0, 0, 2, 0]");
}

TEST(MatchGemm, RefusesOthersWithTheReason) {
  const auto refuses = [](const absl::StatusOr<GemmForm>& form,
                          const char* why) {
    EXPECT_EQ(form.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(form.status().message()), HasSubstr(why));
  };
  const std::string plain = Buffers("3, 8, 4", "3, 4, 16", "3, 8, 16");
  const std::string out = "C[vb, vi, vj]";
  refuses(Match(Buffers("3, 8, 4", "3, 4, 16", "3, 8, 16", "float64"), out,
                "A[vb, vi, vk] * B[vb, vk, vj]", "T.float64(0)"),
          "not of float32");
  refuses(Match(plain, out, "A[vb, vi, vk] * B[vb, vk, vj]", "T.float32(1)"),
          "init is not 0");
  refuses(Match(plain, out, "(A[vb, vi, vk] - B[vb, vk, vj])"), "no product");
  refuses(Match(plain, out, "A[vb, vi, vk] * T.float32(2)"), "two elements");
  refuses(Match(Buffers("3, 12, 4", "3, 4, 16", "3, 8, 16"), out,
                "A[vb, vi + vk, vk] * B[vb, vk, vj]"),
          "not a variable of its own");
  refuses(Match(Buffers("3, 8, 4", "3, 16", "3, 8, 16"), out,
                "A[vb, vi, vk] * B[vb, vj]"),
          "variable vk is none of a matrix product");
  refuses(Match(Buffers("3, 8, 4, 2", "3, 4, 16", "3, 8, 16"), out,
                "A[vb, vi, vk, 1] * B[vb, vk, vj]"),
          "contiguous");
  refuses(Match(Buffers("8, 3, 4", "4, 16", "3, 8, 16"), out,
                "A[vi, vb, vk] * B[vk, vj]"),
          "not evenly apart");
}

TEST(LibraryKernels, HaveNamesOfTheirLibraries) {
  for (const LibraryKernel& kernel : LibraryKernels()) {
    EXPECT_EQ(kernel.name.rfind(std::string(kernel.library) + ".", 0), 0u);
    EXPECT_TRUE(FindLibraryKernel(kernel.name).has_value());
  }
  EXPECT_FALSE(FindLibraryKernel("sgemm").has_value());
}

}  // namespace
}  // namespace tilefarm::ir
